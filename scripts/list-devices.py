"""Prints the OpenCL devices in the output of `oclprim devices --json`, one a line: list-devices.py FILE SELECTION."""

import json
import sys


def main():
    path, selection = sys.argv[1:]
    with open(path) as file:
        devices = json.load(file)
    if isinstance(devices, dict):
        devices = devices["devices"]
    for device in devices:
        info = device.get("info", device)
        if not info["opencl"]:
            continue
        capabilities = device.get("capabilities") or {}
        sub_group = capabilities.get("sub_group") or {}
        facts = [info["platform"], info["name"], info.get("version", "")]
        facts.append(f"sub-group {sub_group.get('backend', '?')} {sub_group.get('width', '?')}")
        facts += [name for name in ("fp64", "fp16", "int64_atomics", "forward_progress") if capabilities.get(name)]
        print(f"{selection}: " + ", ".join(fact for fact in facts if fact))


main()
