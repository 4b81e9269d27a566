"""Write sbom.cdx.json: the bill of materials, in CycloneDX, that wheels of Noisegate carry.

Run by `make lock`, from the repository's folder, after docker/lock.py: it lists the packages of requirements.lock.
"""

import json
import re
import sys
from pathlib import Path


def main() -> int:
    """Read the lock, and write."""
    lock = Path("requirements.lock").read_text(encoding="utf-8")
    components = [
        {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
        for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE)
    ]
    noisegate = {"type": "application", "name": "noisegate-proxy", "licenses": [{"license": {"id": "Apache-2.0"}}]}
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": noisegate},
        "components": components,
    }
    Path("sbom.cdx.json").write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
