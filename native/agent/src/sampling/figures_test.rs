//! Texts as kernels write them, and as they might.

use super::*;

type Parse<'a> = &'a dyn Fn(&str, &mut Chosen<'_>);

/// What is found with these keys, as `name=value`.
fn found(keys: &[&str], parse: Parse<'_>, text: &str) -> Vec<String> {
    let keys = Keys::new(&keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
    let mut all = Vec::new();
    let mut take = |name: &str, value: u64| all.push(format!("{name}={value}"));
    parse(text, &mut Chosen::new(&keys, &mut take));
    all
}

#[test]
fn names_and_beginnings_choose() {
    let text = "nr_dirty 5\nnr_dirtied 7\npgpgin 1\npgpgout 18446744073709551615\n";
    assert_eq!(
        found(&["nr_dirty", "pgpg*"], &vmstat, text),
        ["nr_dirty=5", "pgpgin=1", "pgpgout=18446744073709551615"]
    );
    assert_eq!(found(&["nr_dir*"], &vmstat, text), ["nr_dirty=5", "nr_dirtied=7"]);
    assert_eq!(found(&["*"], &vmstat, text).len(), 4);
    assert!(found(&["nr", "dirty", "nr_dirtyy"], &vmstat, text).is_empty());
}

#[test]
fn what_is_no_whole_number_is_no_figure() {
    let text = "a -1\nb 1.5\nc 18446744073709551616\nd\n\ne  1\nf 2\n";
    assert_eq!(found(&["*"], &vmstat, text), ["f=2"]);
}

#[test]
fn kibibytes_are_told_in_bytes() {
    let text = "Dirty:               123 kB\nActive(anon):          1 kB\nHugePages_Total:       3\nX: 18446744073709551615 kB\n";
    assert_eq!(found(&["*"], &meminfo, text), ["Dirty=125952", "Active(anon)=1024", "HugePages_Total=3"]);
}

#[test]
fn a_disk_has_its_fields_in_the_order_of_iostats() {
    let text = "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n 254 1 vda1 1 2 3 4 5 6 7 8 9 10 11\n";
    assert_eq!(
        found(&["sda.sectors_*"], &diskstats, text),
        ["sda.sectors_read=3", "sda.sectors_written=7", "sda.sectors_discarded=14"]
    );
    assert_eq!(found(&["sda.f*"], &diskstats, text), ["sda.flushes_completed=16", "sda.flush_ms=17"]);
    assert_eq!(found(&["vda1.*"], &diskstats, text).len(), 11);
}

#[test]
fn run_queues_are_told_by_cpu_and_together() {
    let text = "version 15\ntimestamp 4295\ncpu0 1 0 3 4 5 6 7 8 9\ndomain0 3 1 2\ncpu1 10 0 30 40 50 60 70 80 90\n";
    assert_eq!(found(&["cpu*.wait_ns"], &schedstat, text), Vec::<String>::new());
    assert_eq!(
        found(&["cpu0.run_ns", "cpu.wait_ns", "cpu1.t*"], &schedstat, text),
        ["cpu0.run_ns=7", "cpu1.timeslices=90", "cpu.wait_ns=88"]
    );
    assert_eq!(found(&["*"], &schedstat, text).len(), 3 * 8);
}

#[test]
fn pressure_is_the_time_that_was_lost() {
    let text = "some avg10=0.22 avg60=9.56 avg300=19.85 total=3226\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
    let parse: Parse<'_> = &|text, chosen| pressure("io", text, chosen);
    assert_eq!(found(&["*"], parse, text), ["io.some.total_us=3226", "io.full.total_us=7"]);
}

#[test]
fn a_table_by_cpu_is_summed() {
    let text = "           CPU0       CPU2\n 24:          1          2  IO-APIC   5-edge      ACPI:Ged\nLOC:    10    20   Local timer interrupts\nERR:          3\n";
    assert_eq!(
        found(&["*"], &by_cpu, text),
        ["24=3", "24.cpu0=1", "24.cpu2=2", "LOC=30", "LOC.cpu0=10", "LOC.cpu2=20", "ERR=3"]
    );
    assert_eq!(found(&["LOC"], &by_cpu, text), ["LOC=30"]);
    assert_eq!(found(&["LOC.cpu2"], &by_cpu, text), ["LOC.cpu2=20"]);
}

#[test]
fn of_the_machine_ticks_and_totals() {
    let text = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4\nintr 100 1 2 3\nctxt 55\nprocs_running 2\nsoftirq 9 1 8\n";
    assert_eq!(found(&["cpu.steal_ticks", "cpu0.*"], &stat, text).len(), 1 + 4);
    assert_eq!(
        found(&["intr", "ctxt", "procs_*", "softirq"], &stat, text),
        ["intr=100", "ctxt=55", "procs_running=2", "softirq=9"]
    );
}

#[test]
fn a_process_may_be_called_anything() {
    let text = "42 (a) R 1) S 1 2 3 4 5 6 10 11 12 13 14 15 -1 -2 20 0 3 0 100 8192 2 0 1 1 1 1 1 0 0 0 0 0 0 0 17 1 0 0 6 0\n";
    let parse: Parse<'_> = &|text, chosen| process_stat(text, 4096, chosen);
    assert_eq!(
        found(&["*"], parse, text),
        [
            "stat.minor_faults=10",
            "stat.child_minor_faults=11",
            "stat.major_faults=12",
            "stat.child_major_faults=13",
            "stat.utime_ticks=14",
            "stat.stime_ticks=15",
            "stat.threads=3",
            "stat.vsize_bytes=8192",
            "stat.rss_bytes=8192",
            "stat.cpu=1",
            "stat.blkio_delay_ticks=6",
        ]
    );
}

#[test]
fn of_a_process_bytes_times_and_switches() {
    assert_eq!(found(&["io.write_bytes"], &process_io, "rchar: 1\nwrite_bytes: 4096\n"), ["io.write_bytes=4096"]);
    assert_eq!(
        found(&["schedstat.*"], &process_schedstat, "1 2 3\n"),
        ["schedstat.run_ns=1", "schedstat.wait_ns=2", "schedstat.timeslices=3"]
    );
    let status = "Name:\t5\nVmRSS:\t    2 kB\nThreads:\t1\nSigBlk:\t0000000000000000\nCpus_allowed:\t3\nvoluntary_ctxt_switches:\t9\n";
    assert_eq!(
        found(&["*"], &process_status, status),
        ["status.VmRSS=2048", "status.Threads=1", "status.voluntary_ctxt_switches=9"]
    );
}

#[test]
fn a_beginning_may_be_longer_than_the_name_that_is_asked_about() {
    let keys = Keys::new(&["io.write*".to_owned(), "stat.cpu".to_owned()]);
    assert!(keys.may_choose("io.") && keys.may_choose("stat.") && keys.may_choose("io.write_bytes"));
    assert!(!keys.may_choose("status.") && !keys.may_choose("schedstat."));
}
