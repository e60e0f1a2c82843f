"""What the test bed builds, where it puts it, and what it says when it cannot."""

import json
import platform
import tarfile
from pathlib import Path

import pytest
from testbed import images, modules, needs, programs, python_prefix
from testbed.errors import MissingError

_UPSTREAM = """\
module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
\tgithub.com/blang/semver/v4 v4.0.0
\tk8s.io/api v0.0.0
\tk8s.io/kubelet v0.0.0
\tk8s.io/utils v0.0.0-20260101000000-000000000000
)

replace k8s.io/api => ./staging/src/k8s.io/api
"""


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Use an empty cache and the settings of a machine where nobody chose anything."""
    for name in ("KUBEBUILDER_ASSETS", "KUBERNETES", "GO"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PARTITA_TESTBED_CACHE", str(tmp_path))


def _program(folder: Path, name: str, text: str = "") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_staging_modules_are_replaced_by_their_published_twins() -> None:
    """Exactly what Kubernetes requires at v0.0.0, at the version that belongs to it."""
    text = modules.kubernetes_go_mod("1.37.2", _UPSTREAM)

    assert [line for line in text.splitlines() if "=>" in line] == [
        "\tk8s.io/api => k8s.io/api v0.37.2",
        "\tk8s.io/kubelet => k8s.io/kubelet v0.37.2",
    ]
    assert "require k8s.io/kubernetes v1.37.2\n" in text
    assert "godebug default=go1.26\n" in text


def test_the_pinned_version_is_the_one_of_the_module() -> None:
    """``VERSION`` and ``go.mod`` cannot differ."""
    required = modules.required(modules.HERE / "kubernetes", "k8s.io/kubernetes")
    assert required == modules.PINNED_KUBERNETES


def test_a_build_is_named_after_what_decides_it(tmp_path: Path) -> None:
    """Another checksum is another build."""
    (tmp_path / "go.mod").write_text("", encoding="utf-8")
    (tmp_path / "go.sum").write_text("one", encoding="utf-8")
    module = modules.kubernetes("1.37.2", tmp_path)
    before = module.key()
    (tmp_path / "go.sum").write_text("two", encoding="utf-8")

    assert before.startswith("kubernetes-1.37.2-")
    assert module.key() != before


def test_what_is_not_built_is_named() -> None:
    """The message tells program and version, the hint how to get it."""
    with pytest.raises(MissingError, match=r"etcd .* is not built") as error:
        programs.find()
    assert error.value.hint == "make testbed"


def test_own_programs_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A program in KUBEBUILDER_ASSETS is taken from there; one that is not there is not."""
    own = _program(tmp_path, "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    assert needs.asset("etcd") == own
    assert needs.asset("kubelet") is None


def test_one_own_program_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TEST_ASSET_… comes before the folder."""
    own = _program(tmp_path, "my-server")
    monkeypatch.setenv("TEST_ASSET_KUBE_APISERVER", str(own))

    assert needs.asset("kube-apiserver") == own


@pytest.mark.parametrize(
    ("found", "wanted", "fits"),
    [("go1.26.8", "1.26.0", True), ("go1.27", "1.26.0", True), ("go1.9.7", "1.26.0", False)],
)
def test_go_must_be_late_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: str, wanted: str, *, fits: bool
) -> None:
    """An older Go is refused with both versions, before anything is built."""
    go = _program(tmp_path, "go", f"echo {found}")
    monkeypatch.setenv("GO", str(go))
    if fits:
        assert needs.go(wanted) == str(go)
    else:
        with pytest.raises(MissingError, match=rf"Go {wanted} or later is needed.*{found}"):
            needs.go(wanted)


def test_a_go_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong GO is said to be wrong, not replaced by another."""
    monkeypatch.setenv("GO", "/no/such/go")
    with pytest.raises(MissingError, match="there is no /no/such/go"):
        needs.go("1.26.0")


def test_another_version_is_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBERNETES, with or without its v; empty means the pinned one."""
    monkeypatch.setenv("KUBERNETES", "v1.36.3")
    assert programs.version() == "1.36.3"
    monkeypatch.setenv("KUBERNETES", "")
    assert programs.version() == modules.PINNED_KUBERNETES


@pytest.mark.parametrize(
    ("machine", "architecture"),
    [("x86_64", "amd64"), ("aarch64", "arm64"), ("ppc64le", "ppc64le")],
)
def test_an_image_is_of_this_machines_architecture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: str, architecture: str
) -> None:
    """By the name that images have for it, which is not always the kernel's."""
    monkeypatch.setattr(platform, "machine", lambda: machine)
    folder, target = tmp_path / "root", tmp_path / "image.tar"
    folder.mkdir()
    images.archive(target, name="testbed.local/empty:1", folder=folder)

    with tarfile.open(target) as tar:
        config = tar.extractfile("config.json")
        assert config is not None
        assert json.load(config)["architecture"] == architecture


def test_a_python_prefix_has_what_runs_and_no_more(tmp_path: Path) -> None:
    """Interpreter, C library and the named distributions are there; the standard tests are not."""
    python_prefix.lay_out(tmp_path, ["partita", "click"])

    assert (tmp_path / "usr/bin/python3").is_symlink()
    for name in ("libc.so.6", "python3.*", "partita/__main__.py", "click/__init__.py", "ssl.py"):
        assert list(tmp_path.rglob(name)), name
    for name in ("yaml", "test", "idlelib", "__pycache__", "*.pth"):
        assert not list(tmp_path.rglob(name)), name
