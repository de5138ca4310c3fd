//! Network settings, checked by ip(8), tc(8) and ethtool(8).
//! Each test has a network namespace.

use std::process::Command;

use ajuste_agent::place::tunable::{keep, read, state, write};
use ajuste_agent::plan::Location;

/// Go into a new network with a veth pair `v0` and `v1`, both up.
/// False if that is not permitted.
fn enter_network() -> bool {
    // SAFETY: it concerns this thread only, and every test has one.
    let entered = unsafe { libc::geteuid() == 0 && libc::unshare(libc::CLONE_NEWNET) == 0 };
    if !entered {
        eprintln!("skipped: a network of its own needs root");
        return false;
    }
    sh("ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up");
    true
}

fn sh(script: &str) -> String {
    let done = Command::new("sh").args(["-c", script]).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn place(json: serde_json::Value) -> Location {
    serde_json::from_value(json).unwrap()
}

fn feature(device: &str, name: &str) -> Location {
    place(serde_json::json!({"kind": "feature", "device": device, "name": name}))
}

fn qdisc(device: &str) -> Location {
    place(serde_json::json!({"kind": "qdisc", "device": device}))
}

fn features(device: &str) -> String {
    sh(&format!("ethtool -k {device}"))
}

/// The line that ethtool prints of one feature, or of a group.
fn told(device: &str, name: &str) -> String {
    let all = features(device);
    let line = all.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("no {name} in {all}")).to_owned()
}

#[test]
fn one_feature_is_what_ethtool_says() {
    if !enter_network() {
        return;
    }
    let gso = feature("v0", "tx-generic-segmentation");
    assert_eq!(read(&gso).unwrap(), "1");
    assert_eq!(keep(&gso).unwrap(), "tx-generic-segmentation=1");
    write(&gso, "0").unwrap();
    assert_eq!(told("v0", "generic-segmentation-offload"), "off");
    assert_eq!(read(&gso).unwrap(), "0");
    write(&gso, "tx-generic-segmentation=1").unwrap();
    assert_eq!(told("v0", "generic-segmentation-offload"), "on");
}

#[test]
fn every_feature_and_group_reads_as_ethtool_prints_it() {
    if !enter_network() {
        return;
    }
    let mut count = 0;
    for line in features("v0").lines().skip(1) {
        let (name, state) = line.trim().split_once(": ").unwrap();
        let expected = if state.starts_with("on") { "1" } else { "0" };
        // ethtool prints a feature that is a group of its own only as the group.
        assert_eq!(read(&feature("v0", name)).as_deref(), Ok(expected), "{line}");
        count += 1;
    }
    assert!(count > 40, "{count}");
}

#[test]
fn a_group_is_put_back_member_by_member() {
    if !enter_network() {
        return;
    }
    sh("ethtool -K v0 tx-tcp6-segmentation off tx-tcp-ecn-segmentation off");
    let before = features("v0");
    let tso = feature("v0", "tcp-segmentation-offload");
    let kept = keep(&tso).unwrap();
    assert!(kept.contains("tx-tcp6-segmentation=0") && kept.contains("tx-tcp-segmentation=1"), "{kept}");

    for value in ["0", "1"] {
        write(&tso, value).unwrap();
        assert_eq!(read(&tso).unwrap(), value);
        let expected = if value == "1" { "on" } else { "off" };
        assert_eq!(told("v0", "tx-tcp6-segmentation"), expected);
        assert_ne!(features("v0"), before);
    }
    write(&tso, &kept).unwrap();
    assert_eq!(features("v0"), before);
}

#[test]
fn what_depends_on_a_feature_comes_back_with_it() {
    if !enter_network() {
        return;
    }
    let before = features("v0");
    let sg = feature("v0", "scatter-gather");
    let kept = keep(&sg).unwrap();
    write(&sg, "0").unwrap();
    assert_eq!(told("v0", "tx-tcp-segmentation"), "off [requested on]");
    write(&sg, &kept).unwrap();
    assert_eq!(features("v0"), before);
}

#[test]
fn features_that_cannot_be_changed_say_so() {
    if !enter_network() {
        return;
    }
    let fixed = feature("v0", "large-receive-offload");
    assert_eq!(told("v0", "large-receive-offload"), "off [fixed]");
    assert_eq!(read(&fixed).unwrap(), "0");
    let reason = "feature large-receive-offload of v0 is fixed by the driver";
    assert_eq!(write(&fixed, "1").unwrap_err(), reason);
    assert_eq!(keep(&fixed).unwrap_err(), reason);
    assert_eq!(read(&feature("v0", "warp")).unwrap_err(), "v0 has no feature warp");
    assert_eq!(read(&feature("v7", "rx-gro")).unwrap_err(), "features of v7: No such device");
    assert_eq!(read(&feature("a-name-that-is-too-long", "rx-gro")).unwrap_err().matches("no name").count(), 1);
}

#[test]
fn coalescing_is_what_ethtool_says() {
    if !enter_network() {
        return;
    }
    sh("ip tuntap add t0 mode tap");
    let frames = |name| place(serde_json::json!({"kind": "coalesce", "device": "t0", "name": name}));
    write(&frames("rx-frames"), "7").unwrap();
    assert!(sh("ethtool -c t0").replace('\t', " ").contains("rx-frames: 7\n"));
    assert_eq!(read(&frames("rx-frames")).unwrap(), "7");
    assert_eq!(keep(&frames("rx-frames")).unwrap(), "7");
    let refused = write(&frames("tx-usecs"), "5").unwrap_err();
    assert_eq!(refused, "coalesce tx-usecs of t0: Operation not supported");
    assert_eq!(read(&frames("warp")).unwrap_err(), "ethtool has no coalescing parameter warp");
    assert!(write(&frames("rx-frames"), "many").unwrap_err().contains("no number"));
}

#[test]
fn an_interface_without_rings_says_so() {
    if !enter_network() {
        return;
    }
    let ring = place(serde_json::json!({"kind": "ring", "device": "v0", "name": "rx"}));
    assert_eq!(read(&ring).unwrap_err(), "rings of v0: Operation not supported");
}

#[test]
fn a_default_qdisc_is_put_back_by_deleting_the_other() {
    if !enter_network() {
        return;
    }
    let before = sh("tc qdisc show dev v0");
    let root = qdisc("v0");
    assert_eq!(read(&root).unwrap(), "noqueue");
    let kept = keep(&root).unwrap();
    write(&root, "pfifo").unwrap();
    assert_eq!(read(&root).unwrap(), "pfifo");
    assert!(sh("tc qdisc show dev v0").starts_with("qdisc pfifo "));
    write(&root, "bfifo").unwrap();
    write(&root, &kept).unwrap();
    assert_eq!(read(&root).unwrap(), "noqueue");
    assert_eq!(sh("tc qdisc show dev v0"), before);
}

#[test]
fn an_interface_that_is_down_gets_its_default_when_it_comes_up() {
    if !enter_network() {
        return;
    }
    let before = sh("tc qdisc show dev v0");
    sh("ip link set v0 down && ip link add v8 type veth peer name v9");
    for device in ["v0", "v8"] {
        let kept = keep(&qdisc(device)).unwrap();
        write(&qdisc(device), "pfifo").unwrap();
        write(&qdisc(device), &kept).unwrap();
        assert_eq!(state(&qdisc(device)).unwrap(), kept);
        sh(&format!("ip link set {device} up"));
        assert_eq!(sh(&format!("tc qdisc show dev {device}")), before);
    }
}

#[test]
fn a_qdisc_comes_back_with_its_options_and_its_handle() {
    if !enter_network() {
        return;
    }
    let root = qdisc("v0");
    for make in ["handle 7: pfifo limit 42", "bfifo limit 12345", "tbf rate 1mbit burst 32kbit latency 400ms", "mq"] {
        sh(&format!("tc qdisc replace dev v0 root {make}"));
        let before = sh("tc -d qdisc show dev v0");
        let kept = keep(&root).unwrap();
        write(&root, "pfifo_fast").unwrap();
        assert_eq!(read(&root).unwrap(), "pfifo_fast");
        assert_ne!(state(&root).unwrap(), kept);
        write(&root, &kept).unwrap();
        assert_eq!(sh("tc -d qdisc show dev v0"), before, "{make}");
        assert_eq!(state(&root).unwrap(), kept);
        sh("tc qdisc del dev v0 root");
    }
}

#[test]
fn a_qdisc_that_has_its_value_already_is_left_alone() {
    if !enter_network() {
        return;
    }
    sh("tc qdisc replace dev v0 root handle 7: pfifo limit 42");
    let before = sh("tc qdisc show dev v0");
    write(&qdisc("v0"), "pfifo").unwrap();
    assert_eq!(sh("tc qdisc show dev v0"), before);
}

#[test]
fn what_could_not_be_put_back_is_not_kept() {
    if !enter_network() {
        return;
    }
    sh("tc qdisc replace dev v0 root handle 1: htb && tc class add dev v0 parent 1: classid 1:1 htb rate 1mbit");
    let reason = "the qdisc htb of v0 could not be put back: it does not tell all of its state";
    assert_eq!(keep(&qdisc("v0")).unwrap_err(), reason);
    assert!(state(&qdisc("v0")).unwrap().starts_with("htb:10000:"), "what to go back from may be anything");
    sh("tc qdisc add dev v0 parent 1:1 handle 2: pfifo limit 3");
    assert!(keep(&qdisc("v0")).unwrap_err().ends_with("it has others below it"));
    sh("tc qdisc del dev v0 root && tc qdisc add dev v0 root stab overhead 4 linklayer ethernet pfifo");
    assert!(keep(&qdisc("v0")).unwrap_err().ends_with("it has a size table"));
}

#[test]
fn a_kind_that_the_kernel_does_not_have_changes_nothing() {
    if !enter_network() {
        return;
    }
    let before = sh("tc qdisc show dev v0");
    let reason = write(&qdisc("v0"), "warp").unwrap_err();
    assert!(reason.starts_with("qdisc of v0: warp: No such file or directory"), "{reason}");
    assert_eq!(sh("tc qdisc show dev v0"), before);
    assert_eq!(read(&qdisc("v7")).unwrap_err(), "v7: No such device");
    assert!(write(&qdisc("v0"), "a:b:c").unwrap_err().contains("tells no state"));
}
