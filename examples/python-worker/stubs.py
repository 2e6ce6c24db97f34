"""The client of `gigafactory.v1`, generated from the contract the first time it is needed.

Nothing generated is kept under version control: the contract in `proto/` is the only source. In a project of your own
you would run the same command once, when you build.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
BUILD = HERE / "build"
CONTRACT = "gigafactory/v1/dispatch.proto"


def generate(build=BUILD):
    """Generates `gigafactory.v1.dispatch_pb2` and `..._pb2_grpc` into the folder and makes them importable."""
    source = PROTO / CONTRACT
    made = build / "gigafactory" / "v1" / "dispatch_pb2_grpc.py"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        import grpc_tools
        from grpc_tools import protoc

        build.mkdir(parents=True, exist_ok=True)
        well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
        arguments = ["protoc", f"-I{PROTO}", f"-I{well_known}", f"--python_out={build}", f"--grpc_python_out={build}"]
        if protoc.main([*arguments, CONTRACT]) != 0:
            sys.exit(f"the client could not be generated from {source}")
    sys.path.insert(0, str(build))
