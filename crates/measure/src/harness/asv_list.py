import glob
import itertools
import json
import os
import sys

from asv.config import Config
from asv_runner.discovery import disc_benchmarks, update_sys_path
from asv_runner.setup_cache import _setup_cache

found = [path for path in ["asv.conf.json", *sorted(glob.glob("*/asv.conf.json"))] if os.path.exists(path)]
if not found:
    sys.exit("there is no asv.conf.json, here or one folder below")
config = Config.load(found[0])
root = os.path.abspath(os.path.join(os.path.dirname(found[0]), config.benchmark_dir))
update_sys_path(root)
here, folders, listed = os.getcwd(), {}, []
for benchmark in disc_benchmarks(root):
    if benchmark.type != "time":
        continue
    key = benchmark.setup_cache_key
    if key is not None and key not in folders:
        folders[key] = f".holdpoint/asv/{len(folders)}"
        os.makedirs(folders[key], exist_ok=True)
        os.chdir(folders[key])
        _setup_cache((root, benchmark.name, "{}"))
        os.chdir(here)
    choices = list(itertools.product(*benchmark.params))
    for index, choice in enumerate(choices):
        if len(choices) > 1:
            benchmark.set_param_idx(index)
            if key is None and benchmark.do_setup():
                continue
        listed.append({
            "name": f"{benchmark.name}({', '.join(map(str, choice))})" if choice else benchmark.name,
            "id": f"{benchmark.name}-{index}" if choice else benchmark.name,
            "benchmark_dir": root,
            "folder": folders.get(key, ""),
        })
with open(sys.argv[1], "w") as file:
    json.dump(listed, file)
