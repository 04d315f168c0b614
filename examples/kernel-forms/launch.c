/* A library for [workload.kernel]: one C function that puts its launches on the stream it is given. This one loads forms.cubin from its own
 * folder and needs no CUDA toolkit to build:  cc -shared -fPIC -o liblaunch.so launch.c -ldl
 * A library of CUTLASS kernels would call them here with its stream, as any program does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int (*load_t)(void **module, const char *path);
typedef int (*get_t)(void **function, void *module, const char *name);
typedef int (*launch_t)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                        void **arguments, void **extra);

int launch_copy(void *stream, void *const *tensors, const long long *sizes, const char *dtype) {
    static void *function;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver || strcmp(dtype, "f16")) return 1;
    if (!function) {
        Dl_info here;
        char path[4096];
        void *module;
        if (!dladdr((void *)launch_copy, &here)) return 2;
        const char *slash = strrchr(here.dli_fname, '/');
        snprintf(path, sizeof path, "%.*s/forms.cubin", (int)(slash ? slash - here.dli_fname : 0), here.dli_fname);
        if (((load_t)dlsym(driver, "cuModuleLoad"))(&module, path)) return 3;
        if (((get_t)dlsym(driver, "cuModuleGetFunction"))(&function, module, "copy_plain")) return 4;
    }
    void *in = tensors[0], *out = tensors[1];
    long long count = sizes[0];
    void *arguments[] = {&in, &out, &count};
    launch_t launch = (launch_t)dlsym(driver, "cuLaunchKernel");
    return launch(function, (unsigned)((count + 255) / 256), 1, 1, 256, 1, 1, 0, stream, arguments, 0);
}
