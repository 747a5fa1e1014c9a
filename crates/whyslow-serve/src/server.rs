use std::sync::Arc;

use crate::command_line::CommandLine;
use crate::desk::Desk;
use crate::lake::Fleet;
use crate::limited::Resident;
use crate::memo::Memo;
use crate::note_store::Notes;
use crate::shelf::Shelf;
use crate::sql_program::Sql;
use crate::token::Token;

/// What all connections have in common.
pub(crate) type Shared = Arc<Server>;

pub(crate) struct Server {
    /// Reads what is asked, in the words of the command line.
    pub(crate) command_line: Box<dyn CommandLine>,
    pub(crate) token: Token,
    pub(crate) shelf: Shelf,
    pub(crate) desk: Arc<Desk>,
    /// For what takes milliseconds and must not wait behind what takes seconds.
    pub(crate) quick: Arc<Desk>,
    /// For explanations, which may take longer, and are kept.
    pub(crate) slow: Arc<Desk>,
    pub(crate) sql: Sql,
    pub(crate) fleet: Fleet,
    pub(crate) notes: Notes,
    pub(crate) memo: Memo,
    pub(crate) resident: Arc<Resident>,
    /// Whether the kernel keeps it from other files.
    pub(crate) is_confined: bool,
}
