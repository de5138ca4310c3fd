"""Exports are read, applied and taken back by the programs that they are for."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from ajuste.model.plan import Attributes, Coalesce, DeviceFeature, Ring
from ajuste.model.plan import FileLocation as PlainFile
from ajuste_profiles.export import Export, ExportFile, ExportSetting
from ajuste_profiles.formats import default_format, renderers
from namespace import in_namespace, needs_root
from tuned_daemon import serving

READ = "cat /proc/sys/net/ipv4/tcp_fin_timeout /proc/sys/net/ipv4/tcp_rmem /sys/class/net/lo/mtu | tr '\\t' ' '; echo"


def write(export: Export, format: str, directory: Path) -> list[ExportFile]:
    files = renderers()[format](export).files
    for file in files:
        path = directory / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
        path.chmod(0o755 if file.executable else 0o644)
    return list(files)


@needs_root
def test_the_script_applies_and_puts_back(network: Export, tmp_path: Path) -> None:
    write(network, "shell", tmp_path)
    output = in_namespace(
        f"{READ}; ./ajuste-network apply; {READ}; ./ajuste-network apply; ./ajuste-network show; "
        f"./ajuste-network undo; {READ}; ./ajuste-network undo",
        tmp_path,
    )
    before, during, _, _, _, after, last = re.split(r"\n\n|(?<=9000\n)(?=/)|\n(?=/)|\n(?=60)", output.strip())[:7]
    assert during.split() == ["33", "4096", "100000", "200000", "9000"]
    assert after == before
    assert last == "nothing was applied since the last boot"


@needs_root
def test_what_the_kernel_refuses_is_said_and_can_be_taken_back(network: Export, tmp_path: Path) -> None:
    refused = ExportSetting("x", PlainFile(path="/proc/sys/net/ipv4/tcp_fin_timeout"), "no number", "no number", "60")
    write(Export("ajuste-refused", "c", (), (*network.settings, refused)), "shell", tmp_path)
    output = in_namespace(f"{READ}; ./ajuste-refused apply || echo failed; ./ajuste-refused undo; {READ}", tmp_path)
    before, after = output.split("failed\n")
    assert before == after


@needs_root
def test_sysctl_takes_the_file(network: Export, tmp_path: Path) -> None:
    (file,) = write(network, "sysctl.d", tmp_path)
    assert file.name > "99-sysctl.conf", "of several files the last one counts, and this one is /etc/sysctl.conf"
    assert "net.mtu[lo]" in file.text, "what is no sysctl is named in a comment"
    output = in_namespace(f"sysctl --quiet --load={file.name}; {READ}", tmp_path)
    assert output.split() == ["33", "4096", "100000", "200000", "65536"]


@needs_root
def test_tuned_adm_accepts_verifies_and_takes_back_the_profile(network: Export, tmp_path: Path) -> None:
    write(network, "tuned", tmp_path)
    output = in_namespace(
        f"""
        {serving("ajuste-network")}
        {READ}
        tuned-adm profile ajuste-network; tuned-adm active; tuned-adm verify; {READ}
        tuned-adm off; {READ}
        """,
        tmp_path,
    )
    assert "Current active profile: ajuste-network" in output
    assert "succeeded" in output
    before, during, after = re.findall(r"^(\d+\n\d+ \d+ \d+\n\d+)$", output, re.MULTILINE)
    assert during.split() == ["33", "4096", "100000", "200000", "9000"]
    assert after == before


def test_a_profile_has_a_section_for_each_kind_and_names_what_it_has_no_words_for(everything: Export) -> None:
    rendered = renderers()["tuned"](everything)
    profile = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    profile.optionxform = str  # type: ignore[assignment,method-assign]
    profile.read_string(rendered.files[0].text)
    assert dict(profile["sysctl"])["net.ipv4.conf.eth0/100.rp_filter"] == "1"
    assert dict(profile["sysfs"])["/sys/block/sda/queue/scheduler"] == "bfq"
    assert profile["net_eth0_tx-generic-segmentation"]["features"] == "tx-generic-segmentation off"
    assert profile["net_eth0_ring_rx"]["ring"] == "rx 512"
    assert profile["net_eth0_rx-usecs"]["coalesce"] == "rx-usecs 50"
    assert profile["bootloader"]["cmdline_ajuste_everything"] == "+isolcpus=1"
    assert {omitted.what.split()[0] for omitted in rendered.left_out} >= {"sched_feature.X", "nice", "policy"}


@pytest.mark.parametrize("device", ["br_lan", "eth0", "wlan_5_a"])
def test_a_section_of_a_network_device_names_all_of_it(device: str) -> None:
    locations: list[DeviceFeature | Ring | Coalesce] = [
        DeviceFeature(device=device, name="tx-checksumming"),
        Ring(device=device, name="rx"),
        Coalesce(device=device, name="rx-usecs"),
    ]
    rendered = renderers()["tuned"](
        Export("x", "c", (), tuple(ExportSetting("x", each, "1", "1") for each in locations))
    )
    assert rendered.files[0].text.count(f"\ndevices={device}\n") == len(locations)


@pytest.mark.parametrize("value", ["${f:exec:id}", "1 # more", ">5", "x;y"])
def test_a_value_that_means_something_to_tuned_is_left_out(value: str) -> None:
    setting = ExportSetting("x", PlainFile(path="/proc/sys/vm/x"), value, value)
    rendered = renderers()["tuned"](Export("ajuste-x", "c", (), (setting,)))
    assert (rendered.files, len(rendered.left_out)) == ((), 1)


def test_a_word_of_the_command_line_that_means_something_to_tuned_is_named_and_not_lost() -> None:
    export = Export("ajuste-x", "c", (), (), kernel_arguments=("isolcpus=1", "dyndbg=${f:exec:id}"))
    rendered = renderers()["tuned"](export)
    assert "=+isolcpus=1\n" in rendered.files[0].text
    assert [omitted.what for omitted in rendered.left_out] == ["dyndbg=${f:exec:id}"]


def test_systemd_finds_nothing_wrong_with_the_units(everything: Export, tmp_path: Path) -> None:
    files = {file.name: file for file in write(everything, "systemd", tmp_path)}
    unit, drop_in = files["ajuste-everything.service"], files["ajuste-everything.conf"]
    (tmp_path / unit.name).write_text(unit.text.replace("/usr/local/sbin", str(tmp_path)))
    target = tmp_path / "your.service"
    target.write_text("[Service]\nExecStart=/bin/true\n")
    (tmp_path / "your.service.d").mkdir()
    (tmp_path / "your.service.d" / drop_in.name).write_text(drop_in.text)
    for name in (unit.name, target.name):
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", tmp_path / name], text=True, capture_output=True, check=False
        )
        complaints = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "ajuste" in line]
        assert not complaints, done.stderr
    lines = drop_in.text.splitlines()
    assert {"Nice=-5", "CPUSchedulingPolicy=fifo", "CPUSchedulingPriority=10", "CPUAffinity=0 2"} <= set(lines)
    assert "CPUQuota=50%" in lines


def test_the_playbook_carries_the_files_as_they_are_and_no_template_of_a_person(
    everything: Export, tmp_path: Path
) -> None:
    class Loader(yaml.SafeLoader):
        """Knows Ansible's mark for text that is no template."""

    Loader.add_constructor("!unsafe", lambda loader, node: ("unsafe", loader.construct_scalar(node)))  # type: ignore[arg-type]
    (file,) = write(everything, "ansible", tmp_path)
    (play,) = yaml.load(file.text, Loader)
    copies = {
        task["ansible.builtin.copy"]["dest"]: task["ansible.builtin.copy"]
        for task in play["tasks"]
        if "ansible.builtin.copy" in task
    }
    for rendered_file in renderers()["systemd"](everything).files[:2]:
        mark, content = copies[rendered_file.place]["content"]
        assert (mark, content) == ("unsafe", rendered_file.text)
    assert "lookup" not in str(
        {**play, "tasks": [{k: v for k, v in t.items() if "copy" not in k} for t in play["tasks"]]}
    )


@pytest.mark.parametrize("format", renderers())
def test_text_of_a_person_never_leaves_its_comment(everything: Export, format: str) -> None:
    for file in renderers()[format](everything).files:
        assert "\x1b" not in file.text
        assert not [line for line in file.text.splitlines() if line.startswith("rm -rf")]


@pytest.mark.parametrize("format", renderers())
def test_what_a_format_cannot_say_at_all_makes_no_file(format: str) -> None:
    assert not renderers()[format](Export("ajuste-x", "c", ("because",), ())).files


def test_only_a_service_has_a_place_for_what_belongs_to_a_process() -> None:
    export = Export("ajuste-nice", "c", (), (), Attributes(nice=5))
    assert default_format(export) == "systemd"
    assert [file.name for file in renderers()["systemd"](export).files] == ["ajuste-nice.conf"]
    for format in ("tuned", "sysctl.d", "shell", "ansible"):
        rendered = renderers()[format](export)
        assert not rendered.files
        assert "systemd" in rendered.left_out[0].why


def test_what_the_kernel_made_of_a_value_is_exported_and_said() -> None:
    setting = ExportSetting("vm.x", PlainFile(path="/proc/sys/vm/x"), "1000001", "1000448", "5")
    text = renderers()["sysctl.d"](Export("ajuste-x", "c", (), (setting,))).files[0].text
    assert "vm.x = 1000448" in text
    assert "1000001 was asked for" in text
