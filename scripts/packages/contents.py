"""What is in the program that others made: contents.py LICENCES SBOM.

Writes the licence texts of all packages that the program is built from, and their list in CycloneDX 1.5, as
`cargo metadata` names them for the target that is shipped.
"""

import json
import pathlib
import subprocess
import sys

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot5
from packageurl import PackageURL

TARGET = "x86_64-unknown-linux-gnu"
PROGRAM = "spindle"
LICENCE_FILES = ("LICENSE*", "LICENCE*", "COPYING*", "COPYRIGHT*", "NOTICE*", "license*", "UNLICENSE*")


def packages_of_the_program():
    """Packages that PROGRAM is built from, without those that only tests use."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={TARGET}"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [identity for identity, package in packages.items() if package["name"] == PROGRAM and not package["source"]]
    reached = set()
    while waiting:
        identity = waiting.pop()
        if identity in reached:
            continue
        reached.add(identity)
        for dependency in nodes[identity]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    found = [packages[identity] for identity in reached if packages[identity]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def write_licences(packages, path):
    """The licence texts of each package, or the name of its licence where it brings no text."""
    with path.open("w", encoding="utf-8") as out:
        for package in packages:
            title = f"{package['name']} {package['version']} ({package['license'] or 'see below'})"
            print(title, "=" * len(title), sep="\n", file=out)
            folder = pathlib.Path(package["manifest_path"]).parent
            files = sorted({file for pattern in LICENCE_FILES for file in folder.glob(pattern) if file.is_file()})
            if not files:
                print(f"No text is in the package; see {package['repository'] or 'crates.io'}.", file=out)
            for file in files:
                print(file.read_text(encoding="utf-8", errors="replace").strip(), end="\n\n", file=out)
            print(file=out)


def write_sbom(packages, path):
    """The list of packages in CycloneDX."""
    factory = LicenseFactory()
    bom = Bom()
    bom.metadata.component = Component(name=PROGRAM, type=ComponentType.APPLICATION)
    for package in packages:
        name, version = package["name"], package["version"]
        licences = [factory.make_from_string(package["license"])] if package["license"] else []
        url = PackageURL(type="cargo", name=name, version=version)
        bom.components.add(Component(name=name, version=version, purl=url, bom_ref=str(url), licenses=licences))
    bom.register_dependency(bom.metadata.component, bom.components)
    path.write_text(JsonV1Dot5(bom).output_as_string(indent=2), encoding="utf-8")


if __name__ == "__main__":
    found = packages_of_the_program()
    write_licences(found, pathlib.Path(sys.argv[1]))
    write_sbom(found, pathlib.Path(sys.argv[2]))
    print(f"{len(found)} packages of others")
