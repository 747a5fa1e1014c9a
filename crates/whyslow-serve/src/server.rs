use std::sync::Arc;

use crate::command_line::CommandLine;
use crate::lake::Fleet;
use crate::limited::Resident;
use crate::memo::Memo;
use crate::note_store::Notes;
use crate::query_queue::QueryQueue;
use crate::recording_set::RecordingSet;
use crate::sql_program::Sql;
use crate::token::Token;

/// Shared by all connections.
pub(crate) type Shared = Arc<Server>;

pub(crate) struct Server {
    /// Parses requests in the syntax of the command line.
    pub(crate) command_line: Box<dyn CommandLine>,
    pub(crate) token: Token,
    pub(crate) recordings: RecordingSet,
    pub(crate) queue: Arc<QueryQueue>,
    /// For queries of milliseconds, which must not wait behind queries of seconds.
    pub(crate) quick: Arc<QueryQueue>,
    /// For explanations, which may take longer and are cached.
    pub(crate) slow: Arc<QueryQueue>,
    pub(crate) sql: Sql,
    pub(crate) fleet: Fleet,
    pub(crate) notes: Notes,
    pub(crate) memo: Memo,
    pub(crate) resident: Arc<Resident>,
    /// Whether the kernel confines the server.
    pub(crate) is_confined: bool,
}
