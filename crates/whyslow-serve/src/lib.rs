//! `notes`: bookmarks of a recording, the only thing that is ever written for who asks. They lie in the
//! user's state folder, named after the content of the recording: it may be moved, and need not be
//! writable.

mod app;
mod args;
mod assets;
mod charts;
mod command_line;
mod confine;
mod desk;
mod desks;
mod explain;
mod flame;
mod fleet;
mod folders;
mod form;
mod guard;
mod held;
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
mod paths;
mod query;
mod questions;
mod recordings;
mod reply;
mod run;
mod search;
mod server;
mod shelf;
mod sql;
mod sql_program;
mod thread_names;
mod tiles;
mod token;
mod wakeups;

pub use app::DESCRIPTION;
pub use args::{EXAMPLES, ListenArg, ServeArgs};
pub use command_line::{
    CommandLine, Explained, Explanation, FlameGraphQuestion, LakeQuestion, Opener, Question,
};
pub use in_process::{Answers, page};
pub use query::REFUSED;
pub use run::run;
