BEGIN TRANSACTION;
CREATE TABLE columns (
	run_id VARCHAR NOT NULL, 
	place INTEGER NOT NULL, 
	trials INTEGER NOT NULL, 
	total INTEGER NOT NULL, 
	columns INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	words VARCHAR NOT NULL, 
	numbers BLOB NOT NULL, 
	"check" INTEGER NOT NULL, 
	PRIMARY KEY (run_id, place), 
	FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',0,7,14136990182,18,'block','',X'934E554D5059010076007B276465736372273A20277C7531272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A00000101010202',693180023);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',1,7,14136990182,18,'position','',X'934E554D5059010076007B276465736372273A20277C7531272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A00010000010001',3970319225);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',2,7,14136990182,18,'attempt','',X'934E554D5059010076007B276465736372273A20277C7531272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A00000001000000',378637640);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',3,7,14136990182,18,'seed','',X'934E554D5059010076007B276465736372273A20273C7538272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A5C246FBED76010005C246FBED7601000E999B0D9B29E0A00E999B0D9B29E0A00E999B0D9B29E0A009795F4B66A590E009795F4B66A590E00',1666934172);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',4,7,14136990182,18,'warm_up','',X'934E554D5059010076007B276465736372273A20277C6231272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A00000000000000',1261345230);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',5,7,14136990182,18,'configuration','["sched_min_granularity_ns=75000000", "sched_min_granularity_ns=750000"]',X'934E554D5059010076007B276465736372273A20277C7531272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A00010000010001',145765712);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',6,7,14136990182,18,'status','["ok", "failed"]',X'934E554D5059010076007B276465736372273A20277C7531272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A00000100000000',235487909);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',7,7,14136990182,18,'reason','["", "the guest hung"]',X'934E554D5059010076007B276465736372273A20277C7531272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A00000100000000',2376648872);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',8,7,14136990182,18,'not_supported','[{}]',X'934E554D5059010076007B276465736372273A20277C7531272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A00000000000000',3094989759);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',9,7,14136990182,18,'written','[[{"at_ns": 0, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "75000000", "before": "750000", "after": "75000000"}], [{"at_ns": 0, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "750000", "before": "750000", "after": "750000"}], []]',X'934E554D5059010076007B276465736372273A20277C7531272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A00010200010001',1612696340);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',10,7,14136990182,18,'metric:elapsed','',X'934E554D5059010076007B276465736372273A20273C6638272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A000000000000F03F000000000000F03F000000000000F87F000000000000F03F000000000000F03F000000000000F03F000000000000F03F',3309409511);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',11,7,14136990182,18,'metric:user-time','',X'934E554D5059010076007B276465736372273A20273C6638272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A95D626E80B2E113E95D626E80B2E113E000000000000F87F95D626E80B2E113E95D626E80B2E113E95D626E80B2E113E95D626E80B2E113E',618234839);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',12,7,14136990182,18,'metric:system-time','',X'934E554D5059010076007B276465736372273A20273C6638272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A95D626E80B2E113E95D626E80B2E113E000000000000F87F95D626E80B2E113E95D626E80B2E113E95D626E80B2E113E95D626E80B2E113E',2588469431);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',13,7,14136990182,18,'metric:voluntary-switches','',X'934E554D5059010076007B276465736372273A20273C6638272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A000000000000F03F000000000000F03F000000000000F87F000000000000F03F000000000000F03F000000000000F03F000000000000F03F',4244164643);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',14,7,14136990182,18,'metric:involuntary-switches','',X'934E554D5059010076007B276465736372273A20273C6638272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A00000000000026400000000000005940000000000000F87F0000000000002440000000000000594000000000000026400000000000805940',815165111);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',15,7,14136990182,18,'metric:minor-faults','',X'934E554D5059010076007B276465736372273A20273C6638272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A000000000000F03F000000000000F03F000000000000F87F000000000000F03F000000000000F03F000000000000F03F000000000000F03F',4188818230);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',16,7,14136990182,18,'metric:major-faults','',X'934E554D5059010076007B276465736372273A20273C6638272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A00000000000000000000000000000000000000000000F87F0000000000000000000000000000000000000000000000000000000000000000',3660224538);
INSERT INTO "columns" VALUES('20261122-163035-00b9d1',17,7,14136990182,18,'metric:peak-rss','',X'934E554D5059010076007B276465736372273A20273C6638272C2027666F727472616E5F6F72646572273A2046616C73652C20277368617065273A2028372C292C207D2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200A000000000000F03F000000000000F03F000000000000F87F000000000000F03F000000000000F03F000000000000F03F000000000000F03F',3462037889);
CREATE TABLE digests (
	run_id VARCHAR NOT NULL, 
	trials INTEGER NOT NULL, 
	total INTEGER NOT NULL, 
	digest VARCHAR NOT NULL, 
	"check" INTEGER NOT NULL, 
	PRIMARY KEY (run_id), 
	FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "digests" VALUES('20261122-163035-00b9d1',7,14136990182,'50a1a45395f5b39d691de2538d799a7fa1f0c90e4377f9b8543a6f0af44c095a',1824506852);
CREATE TABLE machines (
	run_id VARCHAR NOT NULL, 
	block INTEGER NOT NULL, 
	machine VARCHAR NOT NULL, 
	"check" INTEGER NOT NULL, 
	PRIMARY KEY (run_id, block), 
	FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "machines" VALUES('20261122-163035-227787',3,'lab1',4062551783);
CREATE TABLE recorded (
	run_id VARCHAR NOT NULL, 
	configuration VARCHAR NOT NULL, 
	document VARCHAR NOT NULL, 
	"check" INTEGER NOT NULL, 
	PRIMARY KEY (run_id, configuration), 
	FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE runs (
	id VARCHAR NOT NULL, 
	study VARCHAR NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	seed INTEGER NOT NULL, 
	created VARCHAR NOT NULL, 
	ajuste VARCHAR NOT NULL, 
	begun INTEGER NOT NULL, 
	taken_up INTEGER NOT NULL, 
	unverified_before BOOLEAN NOT NULL, 
	"check" INTEGER NOT NULL, 
	named VARCHAR NOT NULL, 
	resolved VARCHAR NOT NULL, 
	environment JSON NOT NULL, 
	stopped VARCHAR NOT NULL, 
	stopped_because VARCHAR NOT NULL, 
	body_check INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "runs" VALUES('20261122-163035-00b9d1','small','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',1,'2026-11-22T16:30:35+00:00','0.1.0',1,3,1,4192305015,'small','{"study":{"version":1,"name":"small","title":"","question":"Does a larger minimum granularity mean fewer switches?","notes":[],"factors":[{"name":"sched_min_granularity_ns","levels":["750000","75000000"],"range":null,"points":null,"step":null,"scale":null,"settings":{},"baseline":null,"prove":{},"successor":false}],"workload":{"kind":"matrix","command":null,"parameters":{"size":"100","repetitions":"2"},"attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null},"host_parameters":{},"programs":[],"files":[],"timeout_s":60.0,"settle_s":0.02,"background":[{"kind":"spin","command":null,"parameters":{},"attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null},"count":1,"when":{}}],"metrics":[],"variants":[],"setup":null,"prepare":null,"cleanup":null,"ignore_failure":false,"as_root":false,"observe_s":0.0,"samplers":[],"timelines":[]},"scratch":null,"disk":null,"target":{"kind":"vm","kernel":"debian:5.10","clock":"virtual","instruction_ns":8,"cpus":1,"memory_mib":256,"nodes":[],"modules":[],"prove":[],"kernel_arguments":[]},"analysis":{"metrics":["involuntary-switches"],"describe":["elapsed"],"confidence":0.95,"smallest_effect":0.05,"prediction":null,"three_sigma":false,"explain":false},"design":{"seed":1,"combine":"all","order":"random","allocation":null,"warm_up":0},"budget":{"min_blocks":3,"max_blocks":3,"max_minutes":20.0,"min_seconds":0.0},"tune":{"objectives":[],"constraints":[],"trials":80,"sampler":"gp"}},"factors":[{"name":"sched_min_granularity_ns","levels":["750000","75000000"],"baseline":"750000","span":null}],"configurations":[{"configuration":{"name":"sched_min_granularity_ns=750000","levels":{"sched_min_granularity_ns":"750000"},"baseline":true},"kernel":"debian:5.10","writes":[{"tunable":"sched_min_granularity_ns","location":{"kind":"file","path":"/proc/sys/kernel/sched_min_granularity_ns"},"value":"750000","companions":[]}],"workload":{"argv":["/ajuste/bin/ajuste-workloads","matrix","--size","100","--repetitions","2"],"environment":{"LANG":"C.UTF-8","PATH":"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},"directory":"/","attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null,"cgroup_limits":{}},"user":null},"background":[{"argv":["/ajuste/bin/ajuste-workloads","spin"],"environment":{"LANG":"C.UTF-8","PATH":"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},"directory":"/","attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null,"cgroup_limits":{}},"user":null}],"loads":[{"number":1,"endless":true}],"kernel_arguments":[],"modules":[],"scheduler":"","scratch":null,"before":[],"after":[]},{"configuration":{"name":"sched_min_granularity_ns=75000000","levels":{"sched_min_granularity_ns":"75000000"},"baseline":false},"kernel":"debian:5.10","writes":[{"tunable":"sched_min_granularity_ns","location":{"kind":"file","path":"/proc/sys/kernel/sched_min_granularity_ns"},"value":"75000000","companions":[]}],"workload":{"argv":["/ajuste/bin/ajuste-workloads","matrix","--size","100","--repetitions","2"],"environment":{"LANG":"C.UTF-8","PATH":"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},"directory":"/","attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null,"cgroup_limits":{}},"user":null},"background":[{"argv":["/ajuste/bin/ajuste-workloads","spin"],"environment":{"LANG":"C.UTF-8","PATH":"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},"directory":"/","attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null,"cgroup_limits":{}},"user":null}],"loads":[{"number":1,"endless":true}],"kernel_arguments":[],"modules":[],"scheduler":"","scratch":null,"before":[],"after":[]}],"deciding":[{"name":"involuntary-switches","title":"Involuntary context switches","unit":"","direction":"none","scale":"difference","resolution":1.0,"what":"How often the CPU was taken from the workload''s tasks although they wanted to go on.","quantile":null}],"described":[{"name":"elapsed","title":"Elapsed time","unit":"s","direction":"lower","scale":"ratio","resolution":0.0,"what":"From just before the workload''s program is started to its end, by the machine''s own clock.","quantile":null}],"counters":[],"parser":"matrix","patterns":[],"pointers":[],"shares":false,"rule":null,"setup":[],"cleanup":[],"samplers":[],"timelines":[],"programs":[],"files":{},"explained":[{"name":"sched_min_granularity_ns","title":"Least time on the CPU under CFS","what":"How long a task may at least run before another task of the same kind takes the CPU from it at a timer tick. A larger value lets CPU-bound tasks run on for longer, with fewer switches and warmer caches, but each one waits longer for its turn.","unit":"ns","default":"0.75 ms × (1 + log2(CPUs)), CPUs counted up to 8","where":"/proc/sys/kernel/sched_min_granularity_ns","initial_value":null,"note":""}],"notes":[],"search":null,"legs":[]}','{"debian:5.10": {"kernel": "5.10.0-0", "clock": "virtual"}}','decided','the verdict is in after 3 blocks',2312962598);
INSERT INTO "runs" VALUES('20261122-163035-227787','small','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',2,'2026-11-22T16:30:35+00:00','0.1.0',2,4,1,1545496796,'small','{"study":{"version":1,"name":"small","title":"","question":"Does a larger minimum granularity mean fewer switches?","notes":[],"factors":[{"name":"sched_min_granularity_ns","levels":["750000","75000000"],"range":null,"points":null,"step":null,"scale":null,"settings":{},"baseline":null,"prove":{},"successor":false}],"workload":{"kind":"matrix","command":null,"parameters":{"size":"100","repetitions":"2"},"attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null},"host_parameters":{},"programs":[],"files":[],"timeout_s":60.0,"settle_s":0.02,"background":[{"kind":"spin","command":null,"parameters":{},"attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null},"count":1,"when":{}}],"metrics":[],"variants":[],"setup":null,"prepare":null,"cleanup":null,"ignore_failure":false,"as_root":false,"observe_s":0.0,"samplers":[],"timelines":[]},"scratch":null,"disk":null,"target":{"kind":"vm","kernel":"debian:5.10","clock":"virtual","instruction_ns":8,"cpus":1,"memory_mib":256,"nodes":[],"modules":[],"prove":[],"kernel_arguments":[]},"analysis":{"metrics":["involuntary-switches"],"describe":["elapsed"],"confidence":0.95,"smallest_effect":0.05,"prediction":null,"three_sigma":false,"explain":false},"design":{"seed":1,"combine":"all","order":"random","allocation":null,"warm_up":0},"budget":{"min_blocks":3,"max_blocks":3,"max_minutes":20.0,"min_seconds":0.0},"tune":{"objectives":[],"constraints":[],"trials":80,"sampler":"gp"}},"factors":[{"name":"sched_min_granularity_ns","levels":["750000","75000000"],"baseline":"750000","span":null}],"configurations":[{"configuration":{"name":"sched_min_granularity_ns=750000","levels":{"sched_min_granularity_ns":"750000"},"baseline":true},"kernel":"debian:5.10","writes":[{"tunable":"sched_min_granularity_ns","location":{"kind":"file","path":"/proc/sys/kernel/sched_min_granularity_ns"},"value":"750000","companions":[]}],"workload":{"argv":["/ajuste/bin/ajuste-workloads","matrix","--size","100","--repetitions","2"],"environment":{"LANG":"C.UTF-8","PATH":"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},"directory":"/","attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null,"cgroup_limits":{}},"user":null},"background":[{"argv":["/ajuste/bin/ajuste-workloads","spin"],"environment":{"LANG":"C.UTF-8","PATH":"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},"directory":"/","attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null,"cgroup_limits":{}},"user":null}],"loads":[{"number":1,"endless":true}],"kernel_arguments":[],"modules":[],"scheduler":"","scratch":null,"before":[],"after":[]},{"configuration":{"name":"sched_min_granularity_ns=75000000","levels":{"sched_min_granularity_ns":"75000000"},"baseline":false},"kernel":"debian:5.10","writes":[{"tunable":"sched_min_granularity_ns","location":{"kind":"file","path":"/proc/sys/kernel/sched_min_granularity_ns"},"value":"75000000","companions":[]}],"workload":{"argv":["/ajuste/bin/ajuste-workloads","matrix","--size","100","--repetitions","2"],"environment":{"LANG":"C.UTF-8","PATH":"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},"directory":"/","attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null,"cgroup_limits":{}},"user":null},"background":[{"argv":["/ajuste/bin/ajuste-workloads","spin"],"environment":{"LANG":"C.UTF-8","PATH":"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},"directory":"/","attributes":{"nice":null,"policy":null,"priority":null,"affinity":null,"cgroup_weight":null,"cgroup_limits":{}},"user":null}],"loads":[{"number":1,"endless":true}],"kernel_arguments":[],"modules":[],"scheduler":"","scratch":null,"before":[],"after":[]}],"deciding":[{"name":"involuntary-switches","title":"Involuntary context switches","unit":"","direction":"none","scale":"difference","resolution":1.0,"what":"How often the CPU was taken from the workload''s tasks although they wanted to go on.","quantile":null}],"described":[{"name":"elapsed","title":"Elapsed time","unit":"s","direction":"lower","scale":"ratio","resolution":0.0,"what":"From just before the workload''s program is started to its end, by the machine''s own clock.","quantile":null}],"counters":[],"parser":"matrix","patterns":[],"pointers":[],"shares":false,"rule":null,"setup":[],"cleanup":[],"samplers":[],"timelines":[],"programs":[],"files":{},"explained":[{"name":"sched_min_granularity_ns","title":"Least time on the CPU under CFS","what":"How long a task may at least run before another task of the same kind takes the CPU from it at a timer tick. A larger value lets CPU-bound tasks run on for longer, with fewer switches and warmer caches, but each one waits longer for its turn.","unit":"ns","default":"0.75 ms × (1 + log2(CPUs)), CPUs counted up to 8","where":"/proc/sys/kernel/sched_min_granularity_ns","initial_value":null,"note":""}],"notes":[],"search":null,"legs":[]}','{"debian:5.10": {"kernel": "5.10.0-0", "clock": "virtual"}}','','',3771161192);
CREATE TABLE store_version (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "store_version" VALUES(2);
CREATE TABLE tallies (
	run_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	rows INTEGER NOT NULL, 
	total INTEGER NOT NULL, 
	"check" INTEGER NOT NULL, 
	PRIMARY KEY (run_id, kind)
);
INSERT INTO "tallies" VALUES('20261122-163035-00b9d1','trials',7,14136990182,2068729403);
INSERT INTO "tallies" VALUES('20261122-163035-227787','trials',8,20919172122,3748223601);
INSERT INTO "tallies" VALUES('','runs',2,5737801811,175065491);
INSERT INTO "tallies" VALUES('','layout',2,0,2875689927);
INSERT INTO "tallies" VALUES('20261122-163035-227787','machines',1,4062551783,3475382982);
CREATE TABLE trials (
	number INTEGER NOT NULL, 
	run_id VARCHAR NOT NULL, 
	block INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	configuration VARCHAR NOT NULL, 
	seed VARCHAR NOT NULL, 
	warm_up BOOLEAN NOT NULL, 
	status VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	metrics JSON NOT NULL, 
	not_supported JSON NOT NULL, 
	written JSON NOT NULL, 
	events VARCHAR NOT NULL, 
	console VARCHAR NOT NULL, 
	started VARCHAR NOT NULL, 
	host_seconds DOUBLE NOT NULL, 
	"check" INTEGER NOT NULL, 
	outputs_check INTEGER NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (run_id, block, position, attempt), 
	FOREIGN KEY(run_id) REFERENCES runs (id)
);
INSERT INTO "trials" VALUES(1,'20261122-163035-00b9d1',0,1,0,'sched_min_granularity_ns=750000','4610079356560476',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 100.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "750000", "before": "750000", "after": "750000"}]','{"at_ns":1,"event":"accepted","id":"b0p1a0"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"750000","before":"750000","after":"750000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":100,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b0p1a0","ok":true,"events":7}','','2026-11-22T16:30:35.140+00:00',1.5,402266302,1244375543);
INSERT INTO "trials" VALUES(2,'20261122-163035-00b9d1',0,0,0,'sched_min_granularity_ns=75000000','4610079356560476',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 11.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "75000000", "before": "750000", "after": "75000000"}]','{"at_ns":1,"event":"accepted","id":"b0p0a0"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"75000000","before":"750000","after":"75000000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":11,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b0p0a0","ok":true,"events":7}','','2026-11-22T16:30:35.130+00:00',1.5,3652834020,230433885);
INSERT INTO "trials" VALUES(3,'20261122-163035-00b9d1',1,0,0,'sched_min_granularity_ns=75000000','2989240760703465',0,'failed','the guest hung','{}','{}','[]','','','2026-11-22T16:30:35.154+00:00',0.0,1784320436,1655635143);
INSERT INTO "trials" VALUES(4,'20261122-163035-00b9d1',2,0,0,'sched_min_granularity_ns=75000000','4038964544837015',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 11.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "75000000", "before": "750000", "after": "75000000"}]','{"at_ns":1,"event":"accepted","id":"b2p0a0"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"75000000","before":"750000","after":"75000000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":11,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b2p0a0","ok":true,"events":7}','','2026-11-22T16:30:35.160+00:00',1.5,211724516,2227992350);
INSERT INTO "trials" VALUES(5,'20261122-163035-00b9d1',2,1,0,'sched_min_granularity_ns=750000','4038964544837015',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 102.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "750000", "before": "750000", "after": "750000"}]','{"at_ns":1,"event":"accepted","id":"b2p1a0"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"750000","before":"750000","after":"750000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":102,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b2p1a0","ok":true,"events":7}','','2026-11-22T16:30:35.166+00:00',1.5,2648492137,3811383363);
INSERT INTO "trials" VALUES(6,'20261122-163035-00b9d1',1,1,0,'sched_min_granularity_ns=750000','2989240760703465',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 100.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "750000", "before": "750000", "after": "750000"}]','{"at_ns":1,"event":"accepted","id":"b1p1a0"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"750000","before":"750000","after":"750000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":100,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b1p1a0","ok":true,"events":7}','','2026-11-22T16:30:35.158+00:00',1.5,1652450228,2223840476);
INSERT INTO "trials" VALUES(7,'20261122-163035-00b9d1',1,0,1,'sched_min_granularity_ns=75000000','2989240760703465',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 10.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "75000000", "before": "750000", "after": "75000000"}]','{"at_ns":1,"event":"accepted","id":"b1p0a1"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"75000000","before":"750000","after":"75000000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":10,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b1p0a1","ok":true,"events":7}','','2026-11-22T16:30:35.184+00:00',1.5,3784902543,390457665);
INSERT INTO "trials" VALUES(8,'20261122-163035-227787',0,0,0,'sched_min_granularity_ns=75000000','4610079356560476',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 11.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "75000000", "before": "750000", "after": "75000000"}]','{"at_ns":1,"event":"accepted","id":"b0p0a0"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"75000000","before":"750000","after":"75000000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":11,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b0p0a0","ok":true,"events":7}','','2026-11-22T16:30:35.240+00:00',1.5,2215280802,366926508);
INSERT INTO "trials" VALUES(9,'20261122-163035-227787',0,1,0,'sched_min_granularity_ns=750000','4610079356560476',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 100.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "750000", "before": "750000", "after": "750000"}]','{"at_ns":1,"event":"accepted","id":"b0p1a0"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"750000","before":"750000","after":"750000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":100,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b0p1a0","ok":true,"events":7}','','2026-11-22T16:30:35.242+00:00',1.5,3663475746,1857538297);
INSERT INTO "trials" VALUES(10,'20261122-163035-227787',1,1,0,'sched_min_granularity_ns=750000','2989240760703465',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 100.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "750000", "before": "750000", "after": "750000"}]','{"at_ns":1,"event":"accepted","id":"b1p1a0"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"750000","before":"750000","after":"750000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":100,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b1p1a0","ok":true,"events":7}','','2026-11-22T16:30:35.252+00:00',1.5,2950188840,3340742309);
INSERT INTO "trials" VALUES(11,'20261122-163035-227787',2,0,0,'sched_min_granularity_ns=75000000','4038964544837015',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 11.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "75000000", "before": "750000", "after": "75000000"}]','{"at_ns":1,"event":"accepted","id":"b2p0a0"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"75000000","before":"750000","after":"75000000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":11,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b2p0a0","ok":true,"events":7}','','2026-11-22T16:30:35.254+00:00',1.5,1361967778,442084974);
INSERT INTO "trials" VALUES(12,'20261122-163035-227787',2,1,0,'sched_min_granularity_ns=750000','4038964544837015',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 102.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "750000", "before": "750000", "after": "750000"}]','{"at_ns":1,"event":"accepted","id":"b2p1a0"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"750000","before":"750000","after":"750000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":102,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b2p1a0","ok":true,"events":7}','','2026-11-22T16:30:35.258+00:00',1.5,1350231285,1589598127);
INSERT INTO "trials" VALUES(13,'20261122-163035-227787',1,0,0,'sched_min_granularity_ns=75000000','2989240760703465',0,'failed','the guest hung','{}','{}','[]','','','2026-11-22T16:30:35.248+00:00',0.0,3134287717,3928623726);
INSERT INTO "trials" VALUES(14,'20261122-163035-227787',1,0,1,'sched_min_granularity_ns=75000000','2989240760703465',0,'ok','','{"elapsed": 1.0, "user-time": 1e-09, "system-time": 1e-09, "voluntary-switches": 1.0, "involuntary-switches": 10.0, "minor-faults": 1.0, "major-faults": 0.0, "peak-rss": 1.0}','{}','[{"at_ns": 2, "event": "written", "tunable": "sched_min_granularity_ns", "asked": "75000000", "before": "750000", "after": "75000000"}]','{"at_ns":1,"event":"accepted","id":"b1p0a1"}
{"at_ns":2,"event":"written","tunable":"sched_min_granularity_ns","asked":"75000000","before":"750000","after":"75000000"}
{"at_ns":3,"event":"started","role":"background","index":0,"pid":2}
{"at_ns":3,"event":"started","role":"workload","index":0,"pid":3}
{"at_ns":4,"event":"exited","role":"workload","index":0,"exit_code":0,"signal":null,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":10,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"exited","role":"background","index":0,"exit_code":null,"signal":9,"timed_out":false,"wall_ns":1000000000,"user_ns":1,"system_ns":1,"voluntary_switches":1,"involuntary_switches":0,"minor_faults":1,"major_faults":0,"peak_rss_bytes":1}
{"at_ns":4,"event":"output","role":"workload","index":0,"stream":"stdout","text":"matrix size=100 repetitions=2 checksum=1\n","dropped_bytes":0}
{"at_ns":5,"event":"end","id":"b1p0a1","ok":true,"events":7}','','2026-11-22T16:30:35.269+00:00',1.5,3156891081,3995157176);
INSERT INTO "trials" VALUES(15,'20261122-163035-227787',3,0,0,'sched_min_granularity_ns=750000','7',0,'failed','the guest hung','{}','{}','[]','','no
more','',0.0,3086848873,4032757695);
CREATE INDEX ix_runs_study ON runs (study);
CREATE INDEX ix_runs_fingerprint ON runs (fingerprint);
CREATE INDEX ix_trials_run_id ON trials (run_id);
CREATE INDEX trials_measured ON trials (run_id, block, position, attempt, configuration, seed, warm_up, status, reason, metrics, not_supported, written, "check");
COMMIT;
