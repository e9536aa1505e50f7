"""Prints the OpenCL devices in the output of `oclprim devices --json`, one per line: list-devices.py FILE SELECTION."""

import json
import sys


def main():
    path, selection = sys.argv[1:]
    with open(path) as file:
        devices = json.load(file)
    for info in devices:
        if not info["opencl"]:
            continue
        capabilities = info["capabilities"] or {}
        sub_groups = [f"{group['backend']} {group['width']}" for group in capabilities.get("sub_groups", [])]
        facts = [info["platform"], info["name"], info.get("version", "")]
        facts.append("sub-groups " + "/".join(sub_groups))
        facts += [name for name in ("fp64", "fp16", "int64_atomics", "forward_progress") if capabilities.get(name)]
        print(f"{selection}: " + ", ".join(fact for fact in facts if fact))


main()
