"""The files in `deploy/` can be read, agree with each other, and use options that there are."""

import configparser
import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml

from repcl.cli.main import app

DEPLOY = Path(__file__).parents[2] / "deploy"


def options_of(words: list[str]) -> list[str]:
    return [word for word in words if word.startswith("--")]


@pytest.fixture(scope="module")
def known() -> set[str]:
    serve = typer.main.get_command(app).commands["serve"]
    return {name for parameter in serve.params for name in parameter.opts}


def instructions() -> dict[str, str]:
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    return dict(line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#"))


def compose() -> dict:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def kubernetes() -> list[dict]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def containers() -> list[dict]:
    return [
        one["spec"]["template"]["spec"]["containers"][0]
        for one in kubernetes()
        if one["kind"] == "Deployment"
    ]


def test_the_container_is_not_root_checks_its_health_and_fetches_nothing():
    found = instructions()
    assert found["USER"].isdigit()
    assert found["USER"] != "0"
    assert "/v1/ready" in found["HEALTHCHECK"]
    assert "HF_HUB_OFFLINE=1" in found["ENV"]


def test_every_option_that_is_used_is_there(known):
    found = instructions()
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(DEPLOY / "repcl.service")
    used = [
        *options_of(yaml.safe_load(found["ENTRYPOINT"]) + yaml.safe_load(found["CMD"])),
        *options_of(shlex.split(unit["Service"]["ExecStart"])),
        *(word for one in compose()["services"].values() for word in options_of(one.get("command", []))),
        *(word for one in containers() for word in options_of(one["args"])),
    ]
    assert len(used) > 10
    assert set(used) <= known


def test_options_after_the_images_name_still_say_under_which_names_it_is_asked():
    files = (DEPLOY / "Containerfile", DEPLOY.parent / "docs" / "deploy.md")
    lines = [line for file in files for line in file.read_text().splitlines() if "docker run" in line]
    commands = [line for line in lines if "--read-only" in line]
    assert len(commands) == 2
    assert all("repcl --allowed-host '*'" in line for line in commands)


def test_there_is_one_writer_and_readers_cannot_write():
    services = compose()["services"]
    readers = [one for one in services.values() if "--read-only" in one.get("command", [])]
    assert len(readers) == 2
    assert all(mount.endswith(":ro") for one in readers for mount in one["volumes"])
    writer, reader = containers()
    assert "--read-only" not in writer["args"]
    assert "--read-only" in reader["args"]
    assert reader["volumeMounts"][0]["readOnly"]
    assert all(one["securityContext"]["readOnlyRootFilesystem"] for one in (writer, reader))


def test_the_proxy_knows_the_services_that_there_are():
    text = (DEPLOY / "nginx.conf").read_text()
    servers = set(re.findall(r"server ([a-z0-9-]+):8000", text))
    assert servers == {name for name in compose()["services"] if name != "proxy"}
    assert text.count("{") == text.count("}")
    for upstream in re.findall(r"proxy_pass http://(\w+);", text):
        assert f"upstream {upstream} {{" in text


def test_the_proxy_takes_bodies_as_large_as_the_service_does():
    from repcl.serving.options import BODY_BYTES

    assert f"client_max_body_size {BODY_BYTES >> 20}m;" in (DEPLOY / "nginx.conf").read_text()


def test_kubernetes_asks_for_health_where_it_is_told():
    for one in containers():
        assert one["readinessProbe"]["httpGet"]["path"] == "/v1/ready"
        assert one["livenessProbe"]["httpGet"]["path"] == "/v1/health"
