//! The command line, on its own so that man page and completions are made from it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Talks to a running shoal router.
#[derive(Debug, Parser)]
#[command(
    name = "shoalctl",
    version,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true,
    after_help = "Without COMMAND it starts a session, or reads commands \
from standard input if that is no terminal. `help` in a session lists the commands."
)]
pub struct Options {
    #[command(subcommand)]
    pub own: Option<LocalCommand>,

    /// Socket of the router, or HOST:PORT of its `cli-listen` [default: $SHOAL_CLI_SOCK, /run/shoal/cli.sock, /run/vpp/cli.sock, ./cli.sock]
    #[arg(short, long, value_name = "SOCKET")]
    pub socket: Option<PathBuf>,

    /// Print answers as JSON
    #[arg(long, global = true)]
    pub json: bool,

    /// Run the commands of a file; `-` is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "command")]
    pub file: Option<PathBuf>,

    /// What may follow these words, a line each, as shells ask for it
    #[arg(long, hide = true, value_name = "WORDS", num_args = 0.., allow_hyphen_values = true, exclusive = true)]
    pub complete: Option<Vec<String>>,

    /// Command to run; words may be shortened as long as they are unique
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// What the client does by itself; anything else is the router's.
#[derive(Debug, Subcommand)]
pub enum LocalCommand {
    /// Read counters straight from the router's memory
    Stats(Stats),
    /// Send any message of the binary API, as JSON
    Api(Api),
    /// Find out which host had an outside port at a time, by the router's syslog messages
    NatLog(NatLog),
}

#[derive(Debug, Args)]
pub struct NatLog {
    /// The outside address and port, as 192.0.2.1:40000
    #[arg(value_name = "ADDRESS:PORT")]
    pub place: String,

    /// When, as 2026-11-27T21:15:00Z
    #[arg(long, value_name = "TIME")]
    pub at: String,

    /// Only this protocol: tcp, udp or icmp
    #[arg(long, value_name = "PROTOCOL")]
    pub protocol: Option<String>,

    /// What a collector wrote, oldest first; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Api {
    /// Socket of the binary API [default: $SHOAL_API_SOCK, /run/shoal/api.sock, ./api.sock]
    #[arg(short, long, value_name = "SOCKET")]
    pub socket: Option<PathBuf>,

    #[command(subcommand)]
    pub action: ApiAction,
}

#[derive(Debug, Subcommand)]
pub enum ApiAction {
    /// List the messages this router has
    List {
        /// Only those whose name has this in it
        #[arg(value_name = "TEXT")]
        pattern: Option<String>,
    },
    /// Print what a message is made of and how it is answered
    Describe {
        /// Its name
        #[arg(value_name = "MESSAGE")]
        message: String,
    },
    /// Send a request and print each answer as a line of JSON
    Call {
        /// Its name
        #[arg(value_name = "MESSAGE")]
        message: String,
        /// Its fields: a JSON object; what it leaves out has its default, or is 0
        #[arg(value_name = "FIELDS")]
        fields: Option<String>,
    },
    /// Ask for events and print each as a line of JSON, until interrupted
    Watch {
        /// The request they follow, such as want_interface_events
        #[arg(value_name = "MESSAGE")]
        message: String,
        /// Its fields: a JSON object
        #[arg(value_name = "FIELDS")]
        fields: Option<String>,
    },
    /// Commands of the router that begin with the same word
    #[command(external_subcommand)]
    Other(Vec<String>),
}

#[derive(Debug, Args)]
pub struct Stats {
    /// Socket of the segment [default: $SHOAL_STATS_SOCK, /run/shoal/stats.sock, ./stats.sock]
    #[arg(short, long, value_name = "SOCKET", global = true)]
    pub socket: Option<PathBuf>,

    #[command(subcommand)]
    pub action: Action,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the names of counters
    Ls {
        /// Regular expressions; without one, every name
        #[arg(value_name = "PATTERN")]
        patterns: Vec<String>,
    },
    /// Print counters as they are now
    #[command(visible_alias = "dump")]
    Get(CounterSelection),
    /// Print counters again and again, and follow a router that restarts
    Poll {
        #[command(flatten)]
        what: CounterSelection,

        /// Seconds between two rounds
        #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
        interval: f64,

        /// End after so many rounds
        #[arg(long, value_name = "N")]
        count: Option<u64>,
    },
}

#[derive(Debug, Args)]
pub struct CounterSelection {
    /// Regular expressions; without one, every name
    #[arg(value_name = "PATTERN")]
    pub patterns: Vec<String>,

    /// Leave out zeros
    #[arg(short = 'z', long)]
    pub no_zeros: bool,

    /// Only this object: of interfaces' counters, the sw_if_index
    #[arg(short = 'i', long, value_name = "INDEX")]
    pub only_index: Option<usize>,
}
