//! The sections of the router itself, and every stanza that VPP knows.
//!
//! A section that a module declares replaces the one of the same name here, so that a feature which arrives
//! only has to declare its own.

use shoal_module::config::{Body, Effect, Key, Kind, Section};

const COUNT: Kind = Kind::U64 { min: 0, max: u64::MAX };
const SIZE: Kind = Kind::Size { min: 0, max: u64::MAX };
const LEVELS: Kind =
    Kind::Choice(&["emerg", "alert", "crit", "err", "error", "warn", "notice", "info", "debug", "disabled"]);

const POLICIES: &[&str] = &["other", "batch", "idle", "fifo", "rr"];

const GROWS: &str = "tables and heaps grow as they are needed";
const NO_SHM: &str = "the binary API has no shared-memory transport";
const KERNEL: &str = "core files follow the limits of the system or of the service";
const NO_SETTING: &str = "this release has it, and none of these settings";
const NO_FEATURE: &str = "this release has no such feature";
const NO_DEVICE: &str = "this release has no such driver";
const NO_STACK: &str = "this release has no host stack";

/// Sections of the router itself.
pub static OWN: &[Section] = &[
    Section {
        name: "unix",
        doc: "the process: log, CLI, files",
        effect: Effect::Honoured,
        body: Body::Keys(UNIX),
    },
    Section { name: "cpu", doc: "threads and cores", effect: Effect::Honoured, body: Body::Keys(CPU) },
    Section { name: "buffers", doc: "packet memory", effect: Effect::Honoured, body: Body::Keys(BUFFERS) },
    Section { name: "memory", doc: "heaps", effect: Effect::Honoured, body: Body::Keys(MEMORY) },
    Section {
        name: "plugins",
        doc: "which modules run, and which plugins are loaded",
        effect: Effect::Honoured,
        body: Body::Keys(PLUGINS),
    },
    Section {
        name: "socksvr",
        doc: "the binary API's socket",
        effect: Effect::Honoured,
        body: Body::Keys(SOCKSVR),
    },
    Section {
        name: "api-segment",
        doc: "the name of this router among others on the machine",
        effect: Effect::Honoured,
        body: Body::Keys(API_SEGMENT),
    },
    Section {
        name: "api-trace",
        doc: "the last messages of the binary API are kept",
        effect: Effect::Honoured,
        body: Body::Keys(API_TRACE),
    },
    Section {
        name: "statseg",
        doc: "the stats segment",
        effect: Effect::Honoured,
        body: Body::Keys(STATSEG),
    },
    Section { name: "logging", doc: "the log", effect: Effect::Honoured, body: Body::Keys(LOGGING) },
    Section {
        name: "heapsize",
        doc: "the main heap's size, as older files give it",
        effect: Effect::Accepted(GROWS),
        body: Body::Value(SIZE),
    },
    Section {
        name: "ip6",
        doc: "IPv6 tables",
        effect: Effect::Accepted(GROWS),
        body: Body::Keys(&[
            Key::new("hash-buckets", COUNT, "buckets of the table"),
            Key::new("heap-size", SIZE, "the table's heap"),
        ]),
    },
    Section {
        name: "physmem",
        doc: "memory for devices",
        effect: Effect::Accepted(GROWS),
        body: Body::Keys(&[
            Key::new("base-addr", COUNT, "where it is mapped"),
            Key::new("max-size", SIZE, "how much of it there may be"),
        ]),
    },
];

/// Stanzas of VPP that change nothing here: name, what it is, why it has no effect. Their inside is not read.
pub(crate) static FOREIGN: &[(&str, &str, &str)] = &[
    ("acl-plugin", "access lists", NO_FEATURE),
    ("api-fuzz", "test aid of the API", NO_FEATURE),
    ("api-queue", "shared-memory API queue", NO_SHM),
    ("auto-sdl", "session deny lists", NO_STACK),
    ("avf", "Intel AVF devices", NO_DEVICE),
    ("bfd", "bidirectional forwarding detection", NO_FEATURE),
    ("bufmon", "buffer monitor", NO_SETTING),
    ("builtinurl", "built-in URLs", NO_STACK),
    ("cnat", "cloud NAT", NO_FEATURE),
    ("crypto", "crypto engines", NO_FEATURE),
    ("crypto-sw-scheduler", "software crypto queue", NO_FEATURE),
    ("ct6", "IPv6 connection tracking", NO_FEATURE),
    ("det44", "deterministic NAT", NO_FEATURE),
    ("devices", "native devices", NO_DEVICE),
    ("dhcp", "DHCP client and proxy", NO_FEATURE),
    ("dma_intel", "Intel DMA engines", NO_DEVICE),
    ("dns", "DNS resolver", NO_FEATURE),
    ("dpdk", "DPDK devices", "dpdk_plugin.so reads it (docs/guide/dpdk.md)"),
    ("dslite", "DS-Lite", NO_FEATURE),
    ("elog", "event log", NO_SETTING),
    ("ethernet", "Ethernet defaults", NO_SETTING),
    ("gso", "segmentation offload", NO_SETTING),
    ("hs_apps", "host stack applications", NO_STACK),
    ("hsi", "host stack intercept", NO_STACK),
    ("http", "HTTP", NO_STACK),
    ("http_static", "static HTTP server", NO_STACK),
    ("igmp", "IGMP", NO_SETTING),
    ("ikev2", "IKEv2", NO_FEATURE),
    ("ipsec", "IPsec", NO_FEATURE),
    ("l2tp", "L2TPv3", NO_FEATURE),
    ("lb", "load balancer", NO_FEATURE),
    ("lisp", "LISP", NO_FEATURE),
    ("mactime", "time-based MAC filter", NO_FEATURE),
    ("map", "MAP-E and MAP-T", NO_FEATURE),
    ("memif", "memif", "memifs are made with 'create interface memif'"),
    ("mpls", "MPLS", NO_FEATURE),
    ("nat", "NAT44", NO_FEATURE),
    ("nat44", "NAT44", NO_FEATURE),
    ("nat44-ei", "endpoint-independent NAT44", NO_FEATURE),
    ("nat64", "NAT64", NO_FEATURE),
    ("nat66", "NAT66", NO_FEATURE),
    ("node", "node variants", "a node has one variant; the whole program is built for the CPU"),
    ("nsim", "network simulator", NO_FEATURE),
    ("oam", "OAM", NO_FEATURE),
    ("perfmon", "performance counters", NO_FEATURE),
    ("plugin_path", "where plugins lie", "write plugins { path DIR }"),
    ("prom", "Prometheus exporter", "metrics are served after 'set metrics listen'"),
    ("quic", "QUIC", NO_STACK),
    ("rdma", "RDMA devices", NO_DEVICE),
    ("session", "host stack sessions", NO_STACK),
    ("sfdp", "session-aware forwarding", NO_FEATURE),
    ("snort", "Snort", NO_FEATURE),
    ("srtp", "SRTP", NO_STACK),
    ("svs", "source VRF select", NO_FEATURE),
    ("tapcli", "old TAP interfaces", "taps are made with 'create tap'"),
    ("tcp", "TCP", NO_STACK),
    ("tls", "TLS", NO_STACK),
    ("tls_openssl", "TLS by OpenSSL", NO_STACK),
    ("trace", "trace", NO_SETTING),
    ("tracenode", "trace node", NO_FEATURE),
    ("tuntap", "old TUN interface", "taps are made with 'create tap'"),
    ("udp", "UDP", NO_STACK),
    ("unittest", "unit tests", NO_FEATURE),
    ("vhost-user", "vhost-user", "its driver reads it (docs/guide/vhost-user.md)"),
    ("vlib", "graph internals", GROWS),
    ("vmxnet3", "VMware devices", NO_DEVICE),
    ("vrrp", "VRRP", NO_FEATURE),
    ("wireguard", "WireGuard", NO_FEATURE),
];

static UNIX: &[Key] = &[
    Key::new("nodaemon", Kind::Flag, "stay in the foreground"),
    Key::new("interactive", Kind::Flag, "CLI on the terminal; stays in the foreground"),
    Key::new("log", Kind::Path, "append the log and every CLI command to this file"),
    Key::new("exec", Kind::Path, "run this file of CLI commands after the start"),
    Key::new("exec-strict", Kind::Flag, "run nothing of that file when a line of it is wrong"),
    Key::new("startup-config", Kind::Path, "the same as exec; the last one counts"),
    Key::new("cli-listen", Kind::Word, "CLI socket, a path or host:port; default RUNTIME-DIR/cli.sock"),
    Key::new("cli-prompt", Kind::Text, "the prompt; default 'shoal# '"),
    Key::new("cli-line-mode", Kind::Flag, "no editing of the line, for programs that drive the CLI"),
    Key::new("cli-no-banner", Kind::Flag, "no banner"),
    Key::new("cli-no-pager", Kind::Flag, "no pager"),
    Key::new("cli-history-limit", Kind::U64 { min: 0, max: 1 << 20 }, "lines of history; default 50"),
    Key::new(
        "cli-pager-buffer-limit",
        Kind::U64 { min: 0, max: 1 << 30 },
        "lines the pager keeps; default 100000",
    ),
    Key::new(
        "runtime-dir",
        Kind::Path,
        "where sockets lie; default /run/shoal, /run/user/UID/shoal, or /run/vpp when cli-listen is there",
    ),
    Key::new("use-current-dir", Kind::Flag, "the current directory is the runtime directory"),
    Key::new(
        "pidfile",
        Kind::Path,
        "write the process id to this file, in the runtime directory if relative",
    ),
    Key::new("gid", Kind::Word, "group, by name or number, that may use the sockets"),
    Key::new(
        "poll-sleep-usec",
        Kind::U64 { min: 0, max: 1_000_000 },
        "sleep this long in every turn; default 0",
    ),
    Key::new(
        "scheduler-policy",
        Kind::Choice(POLICIES),
        "scheduling of all threads, as in cpu { }; default other",
    ),
    Key::new("scheduler-priority", Kind::U64 { min: 1, max: 99 }, "priority, with fifo and rr"),
    Key::new("nosyslog", Kind::Flag, "log to standard error, not to syslog"),
    Key::new("nocolor", Kind::Flag, "no colours"),
    Key::new("nobanner", Kind::Flag, "no banner at the start"),
    Key::accepted("full-coredump", Kind::Flag, KERNEL, "shared memory in core files"),
    Key::accepted("coredump-size", Kind::Word, KERNEL, "largest core file, a size or unlimited"),
];

static CPU: &[Key] = &[
    Key::new(
        "main-core",
        Kind::Word,
        "core of the main thread, or auto; default: the first free one if there are workers",
    ),
    Key::new("corelist-workers", Kind::CpuList, "cores of the workers, one worker each"),
    Key::new(
        "workers",
        Kind::U64 { min: 0, max: 255 },
        "how many workers, on the next free cores; default 0",
    ),
    Key::new("skip-cores", Kind::U64 { min: 0, max: 65_535 }, "leave the first cores alone; default 0"),
    Key::new("relative", Kind::Flag, "count only the cores this process may use"),
    Key::new("thread-prefix", Kind::Word, "put this before the names of threads"),
    Key::new("scheduler-policy", Kind::Choice(POLICIES), "scheduling of all threads; default other"),
    Key::new("scheduler-priority", Kind::U64 { min: 1, max: 99 }, "priority, with fifo and rr"),
    Key::accepted(
        "coremask-workers",
        Kind::Word,
        "use corelist-workers",
        "cores of the workers as a bit mask",
    ),
    Key::accepted("numa-heap-size", SIZE, GROWS, "heap per NUMA node"),
    Key::accepted("use-pthreads", Kind::Flag, "workers are always threads", "workers are threads"),
    Key::accepted("translate", Kind::Flag, "use relative", "count cores within the container"),
];

static BUFFERS: &[Key] = &[
    Key::new(
        "buffers-per-numa",
        Kind::U64 { min: 512, max: 1 << 28 },
        "buffers each NUMA node may have; default: the pool grows as needed",
    ),
    Key::new(
        "default data-size",
        Kind::U64 { min: 256, max: 65_536 },
        "bytes of data in one buffer; default 2048",
    ),
    Key::new("page-size", Kind::PageSize, "pages the pool is made of; default: huge pages if there are any"),
    Key::new("preallocated", Kind::Flag, "take all memory at the start, not when it is needed"),
    Key::new(
        "numa",
        Kind::Named(&[Key::new("buffers", Kind::U64 { min: 0, max: 1 << 28 }, "buffers of this node")]),
        "one NUMA node",
    ),
];

static MEMORY: &[Key] = &[
    Key::new(
        "main-heap-size",
        Kind::Size { min: 16 << 20, max: 1 << 50 },
        "most memory that tables may take; default: what the system and its limits leave",
    ),
    Key::accepted("main-heap-page-size", Kind::PageSize, GROWS, "pages of the main heap"),
    Key::accepted("default-hugepage-size", SIZE, "the system's default is used", "huge page size"),
];

static PLUGIN: &[Key] = &[
    Key::new("enable", Kind::Flag, "it runs"),
    Key::new("disable", Kind::Flag, "it does not run"),
    Key::accepted(
        "skip-version-check",
        Kind::Flag,
        "a plugin says which ABI it needs",
        "run another version",
    ),
];

static PLUGINS: &[Key] = &[
    Key::new(
        "plugin",
        Kind::Named(PLUGIN),
        "a module by VPP's name (ping_plugin.so) or ours, or a file in a directory of plugins; 'default' means all",
    ),
    Key::new("path", Kind::Path, "where loadable plugins lie; default /usr/lib/shoal/plugins"),
    Key::new("add-path", Kind::Path, "one more directory of plugins"),
    Key::accepted("name-filter", Kind::Word, "name plugins one by one", "load only these"),
    Key::accepted("vat-path", Kind::Path, "there is no API test tool", "plugins of the API test tool"),
    Key::accepted("vat-name-filter", Kind::Word, "there is no API test tool", "plugins of the API test tool"),
];

static SOCKSVR: &[Key] = &[
    Key::new("socket-name", Kind::Path, "the socket; default RUNTIME-DIR/api.sock"),
    Key::new("default", Kind::Flag, "the default socket, which is there in any case"),
];

static API_SEGMENT: &[Key] = &[
    Key::new("prefix", Kind::Word, "a name of its own: the saved configuration has a directory of this name"),
    Key::accepted("uid", Kind::Word, NO_SHM, "owner of the segment"),
    Key::accepted("gid", Kind::Word, NO_SHM, "group of the segment"),
    Key::accepted("baseva", COUNT, NO_SHM, "where the segment is mapped"),
    Key::accepted("global-size", SIZE, NO_SHM, "size of the segment"),
    Key::accepted("api-size", SIZE, NO_SHM, "size of the API's part"),
    Key::accepted("global-pvt-heap-size", SIZE, NO_SHM, "size of the heap beside it"),
    Key::accepted("api-pvt-heap-size", SIZE, NO_SHM, "size of the API's heap"),
];

static API_TRACE: &[Key] = &[
    Key::new("on", Kind::Flag, "keep them from the start"),
    Key::new("enable", Kind::Flag, "keep them from the start"),
    Key::new("nitems", Kind::U64 { min: 1, max: 1 << 24 }, "how many; default 16384, and 64 MiB at most"),
    Key::accepted(
        "save-api-table",
        Kind::Word,
        "`api trace save` stores the table with the messages",
        "a file for the table of messages",
    ),
];

static STATSEG: &[Key] = &[
    Key::new("socket-name", Kind::Path, "the socket; default RUNTIME-DIR/stats.sock"),
    Key::new("default", Kind::Flag, "the default socket, which is there in any case"),
    Key::new("size", Kind::Size { min: 1 << 20, max: 1 << 40 }, "size of the segment; default 32m"),
    Key::new("page-size", Kind::PageSize, "pages of the segment; default: default"),
    Key::new("per-node-counters", Kind::Switch, "counters of every node too; default off"),
    Key::new(
        "update-interval",
        Kind::Seconds { min: 0.001, max: 86_400.0 },
        "seconds between two rounds of the collector; default 10",
    ),
];

static CLASS: &[Key] = &[
    Key::new("level", LEVELS, "what the log keeps"),
    Key::new("syslog-level", LEVELS, "what goes to syslog"),
    Key::new("rate-limit", Kind::U64 { min: 0, max: 1 << 32 }, "messages a second"),
];

static LOGGING: &[Key] = &[
    Key::new("size", Kind::U64 { min: 1, max: 1 << 24 }, "messages that are kept; default 512"),
    Key::new("default-log-level", LEVELS, "what the log keeps; default notice"),
    Key::new("default-syslog-log-level", LEVELS, "what goes to syslog; default warn"),
    Key::new(
        "unthrottle-time",
        Kind::U64 { min: 0, max: 86_400 },
        "seconds a noisy class stays quiet; default 5",
    ),
    Key::accepted("nthrottle-time", COUNT, "write unthrottle-time", "old spelling of unthrottle-time"),
    Key::accepted("add-to-elog", Kind::Flag, NO_FEATURE, "log into the event log too"),
    Key::new(
        "format",
        Kind::Choice(&["text", "json"]),
        "lines on standard error and in the file: text, or a JSON object each; default text",
    ),
    Key::new("class", Kind::Named(CLASS), "one class of messages"),
];
