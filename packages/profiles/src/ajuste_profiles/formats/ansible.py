"""A playbook that installs the unit of ``--format systemd``, or removes it. Source: Ansible's ansible.builtin."""

from __future__ import annotations

import json
from typing import Final

from ajuste_profiles.export import Export, ExportFile, Rendered, comment, not_here, without_process
from ajuste_profiles.formats import systemd

NAME: Final = "ansible"


def render(export: Export) -> Rendered:
    """Return ``NAME.yml``; with ``-e ajuste_state=absent`` it goes back."""
    made = systemd.render(export)
    files = [part for part in made.files if not part.place.endswith(f".d/{part.name}")]
    left_out = (*made.left_out, *without_process(export.attributes))
    if not files:
        return Rendered((), left_out)
    name = export.name
    about = [f"To use it: ansible-playbook {name}.yml -i HOSTS. To go back: the same with -e ajuste_state=absent."]
    lines = [*comment([*export.evidence, *about]), *not_here(left_out)]
    lines += [
        f"- name: {_text(f'Settings that an experiment supports ({name})')}",
        f"  hosts: {_text('{{ ajuste_hosts | default(' + repr('all') + ') }}')}",
        "  become: true",
        "  gather_facts: false",
        "  vars:",
        "    ajuste_state: present",
        "  tasks:",
        "    - name: Put the settings back",
        "      ansible.builtin.systemd_service:",
        f"        name: {name}.service",
        "        state: stopped",
        "        enabled: false",
        "      when: ajuste_state == 'absent'",
        "      failed_when: false",
    ]
    for file in files:
        lines += _copy(file)
    lines += [
        "    - name: Apply the settings now and at every boot",
        "      ansible.builtin.systemd_service:",
        f"        name: {name}.service",
        "        daemon_reload: true",
        "        state: started",
        "        enabled: true",
        "      when: ajuste_state == 'present'",
    ]
    text = "\n".join(lines) + "\n"
    return Rendered((ExportFile(f"{name}.yml", text, ""),), left_out)


def _copy(file: ExportFile) -> list[str]:
    return [
        f"    - name: Install {file.place}",
        "      ansible.builtin.copy:",
        f"        dest: {file.place}",
        f"        mode: {_text('0755' if file.executable else '0644')}",
        "        content: !unsafe |",
        *(f"          {line}".rstrip() for line in file.text.splitlines()),
        "      when: ajuste_state == 'present'",
        f"    - name: Remove {file.place}",
        "      ansible.builtin.file:",
        f"        path: {file.place}",
        "        state: absent",
        "      when: ajuste_state == 'absent'",
    ]


def _text(text: str) -> str:
    # A double-quoted string of YAML, of which JSON's are a part (YAML 1.2, 1.3).
    return json.dumps(text, ensure_ascii=True)
