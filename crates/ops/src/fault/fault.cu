// What goes wrong on purpose, to show that it is seen: a write to an address that is not there, and a kernel that does not end.

extern "C" __global__ void fault_address(unsigned int *out) { out[1ull << 40] = 1; }

extern "C" __global__ void fault_hang(volatile unsigned int *out) {
    while (out[0] != 12345u) {
    }
}
