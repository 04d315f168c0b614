"""Prints a suite with some of its workloads: subset.py SUITE NAME…"""

import re
import sys
from pathlib import Path

head, *blocks = re.split(r"(?m)^(?=\[\[workload\]\])", Path(sys.argv[1]).read_text())
names = {match[1]: block for block in blocks if (match := re.search(r'name = "([^"]+)"', block))}
print(head + "".join(names[name] for name in sys.argv[2:]))
