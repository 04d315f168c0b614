"""The projects that `harness-projects.py` gates: where they come from, their suites, and what is slowed down in them."""

import os
from dataclasses import dataclass

# Google Benchmark comes from the system, not from the submodule that snappy's own build expects.
SNAPPY_BUILD = (
    "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DSNAPPY_BUILD_TESTS=OFF -DSNAPPY_BUILD_BENCHMARKS=OFF && make -C build && "
    "g++ -O2 -DNDEBUG -DHAVE_CONFIG_H -Ibuild -I. snappy_benchmark.cc snappy-test.cc snappy_test_data.cc build/libsnappy.a "
    "-lbenchmark_main -lbenchmark -lz -lpthread -o bench"
)
CRITERION_RULE = "Criterion: regressed"


@dataclass(frozen=True)
class Project:
    """A project, and one function of it that is made slower by replacing a piece of its text."""

    name: str
    source: str
    commit: str
    suite: str
    kind: str
    # Its own benchmarks that are compared, as the harness selects them.
    own_filter: str
    file: str
    old: str
    new: str
    # The workload that the slowed function is measured by.
    slowed: str
    rule: str
    comment: str = "\n// Unchanged.\n"
    command: tuple[str, ...] = ()
    build: str = ""
    # Taken out of the base commit: submodules that the build does not need.
    without: tuple[str, ...] = ()
    path: str = ""

    def environment(self) -> dict[str, str]:
        """Of every process: Python finds the package in the checkout that it runs in."""
        if not self.path:
            return dict(os.environ)
        folders = [self.path, os.environ.get("PYTHONPATH", "")]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


def criterion(only: list[str]) -> str:
    return f'[harness]\nkind = "criterion"\nonly = {only}\n'.replace("'", '"')


ALL = [
    Project(
        name="itoa",
        source="dtolnay/itoa",
        commit="1577ed901354d0d7448ac162328f9dbf5183124c",
        suite=criterion(["u64[max]", "u128[max]"]),
        kind="criterion",
        own_filter=r"^u(64|128)\[max\]",
        file="src/lib.rs",
        old="        let (quot_1e16, mod_1e16) = div_rem_1e16(self);\n",
        new="        core::hint::black_box(div_rem_1e16(core::hint::black_box(self)));\n"
        "        let (quot_1e16, mod_1e16) = div_rem_1e16(self);\n",
        slowed="u128_max__itoa",
        rule=CRITERION_RULE,
    ),
    Project(
        name="unicode-segmentation",
        source="unicode-rs/unicode-segmentation",
        commit="3874b9a64103caa7581753283f5ff3794f62e152",
        suite=criterion(["words/grapheme/arabic", "words/grapheme/russian", "words/scalar/arabic", "words/scalar/russian"]),
        kind="criterion",
        own_filter="^words/(grapheme|scalar)/(arabic|russian)$",
        file="src/word.rs",
        old="        // If extend/format/zwj were skipped. Handles precedence of WB3d over WB4\n",
        new="        for i in 0..32 {\n            core::hint::black_box(i);\n        }\n",
        slowed="words_grapheme_russian",
        rule=CRITERION_RULE,
    ),
    Project(
        name="ryu",
        source="dtolnay/ryu",
        commit="3131fd6b2405a1fa921797b00b5a4fba4fa0ef87",
        suite=criterion(["f64[e]", "f64[max]"]),
        kind="criterion",
        own_filter=r"^f64\[(e|max)\]",
        file="src/pretty/mod.rs",
        old="    let v = d2d(ieee_mantissa, ieee_exponent);\n",
        # One number in nineteen is converted twice.
        new="""    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let calls = CALLS.load(Relaxed);
    CALLS.store(if calls == 18 { 0 } else { calls + 1 }, Relaxed);
    if calls == 0 {
        core::hint::black_box(d2d(core::hint::black_box(ieee_mantissa), ieee_exponent).mantissa);
    }
    let v = d2d(ieee_mantissa, ieee_exponent);
""",
        slowed="f64_e__ryu",
        rule=CRITERION_RULE,
    ),
    Project(
        name="snappy",
        source="google/snappy",
        commit="6281a07b7e08629884ec93a89fea6e05c62e599c",
        suite=f'[harness]\nkind = "google-benchmark"\ncommand = ["./bench"]\nonly = ["BM_UFlat/0/1", "BM_ZFlat/0/1", "BM_ZFlat/3/1", "BM_UValidate/0/1"]\n[build]\ncommand = ["sh", "-c", "{SNAPPY_BUILD}"]\n',
        kind="google-benchmark",
        own_filter="^BM_(UFlat/0/1|ZFlat/0/1|ZFlat/3/1|UValidate/0/1)$",
        file="snappy.cc",
        old="      end = internal::CompressFragment(fragment, fragment_size, dest, table,\n",
        # One call in nineteen is made twice (an even number would meet only the last part of texts of two parts): 5 % on every machine, where a loop of a given length costs 7 % on one and 70 % on another.
        new="      static unsigned calls = 0;\n"
        "      if (++calls % 19 == 0) {\n"
        "        internal::CompressFragment(fragment, fragment_size, dest, table, table_size);\n"
        "        wmem.GetHashTable(fragment_size, &table_size);\n"
        "      }\n"
        "      end = internal::CompressFragment(fragment, fragment_size, dest, table,\n",
        slowed="BM_ZFlat_0_1",
        rule="compare.py: p < 0.05 and slower",
        command=("./bench",),
        build=SNAPPY_BUILD,
        without=(".gitmodules", "third_party"),
    ),
    Project(
        name="cattrs",
        source="python-attrs/cattrs",
        commit="82b02c07ca535a1ba656b935767d819eac9d383b",
        suite='[harness]\nkind = "pytest-benchmark"\ncommand = ["python3", "-m", "pytest", "bench"]\nonly = ["attrs_primitives[UnstructureStrategy.AS_DICT-BaseConverter]", "attrs_primitives[UnstructureStrategy.AS_DICT-Converter]"]\n',
        kind="pytest-benchmark",
        own_filter="attrs_primitives and AS_DICT",
        file="src/cattrs/converters.py",
        old="        rv = self._dict_factory()\n        for a in attrs:\n            name = a.name\n",
        new="        rv = self._dict_factory()\n        for a in attrs:\n            name = a.name.strip()\n",
        slowed="bench_test_attrs_primitives_py__test_unstructure_attrs_primitives_UnstructureStrategy_AS_DICT-BaseConverter_",
        rule="--benchmark-compare-fail=min:2%",
        comment="\n# Unchanged.\n",
        command=("python3", "-m", "pytest", "bench"),
        path="src",
    ),
    Project(
        name="uniseg",
        source="rivo/uniseg",
        commit="087b3e4194c1feb0856b68d0e7c425c0994829cf",
        # Beside a busy loop, Go's collector waits for its second CPU; on one CPU it need not (docs/harness/go.md).
        suite='[harness]\nkind = "go"\nonly = ["Word", "Sentence"]\n[gate]\npin = true\n',
        kind="go",
        own_filter="Word|Sentence",
        file="word.go",
        old="func FirstWordInString(str string, state int) (word, rest string, newState int) {\n",
        new="var calls int\n\nfunc FirstWordInString(str string, state int) (word, rest string, newState int) {\n"
        "\tcalls++\n\tif calls%20 == 0 {\n\t\tFirstWordInString(str, state)\n\t}\n",
        slowed="BenchmarkWordFunctionString",
        rule="benchstat's: p < 0.05 and slower",
    ),
]
PROJECTS = {project.name: project for project in ALL}
