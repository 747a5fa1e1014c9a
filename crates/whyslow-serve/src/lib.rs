//! `serve`: recordings for browsers and programs, over HTTP on loopback.
//!
//! Only notes can be written, only the specified recordings can be read, and all requests need the
//! token.

mod app;
mod args;
mod assets;
mod charts;
mod command_line;
mod confine;
mod explain;
mod flame;
mod fleet;
mod folders;
mod form;
mod guard;
mod in_process;
mod lake;
mod lanes;
mod limited;
mod listen;
mod live;
mod memo;
mod metrics;
mod note_store;
mod notes;
mod open_recording;
mod paths;
mod queries;
mod query;
mod query_queue;
mod query_queues;
mod recording_set;
mod recordings;
mod reply;
mod run;
mod search;
mod server;
mod sql;
mod sql_program;
mod ssh;
mod thread_names;
mod tiles;
mod token;
mod wakeups;

pub use app::DESCRIPTION;
pub use args::{EXAMPLES, ListenArg, ServeArgs};
pub use command_line::{
    CommandLine, Explained, Explanation, FlameGraphQuery, Opener, ParsedLakeQuery, ParsedQuery,
};
pub use in_process::{Answers, page};
pub use query::{CommandWords, Query, REFUSED, command_words};
pub use reply::Refusal;
pub use run::run;
