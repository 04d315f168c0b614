import pytest

from words import count


@pytest.mark.parametrize("length", [200, 2000])
def test_count(benchmark, length):
    text = " ".join(f"word{i * i % 211}" for i in range(length))
    counts = benchmark(count, text)
    assert sum(counts.values()) == length
