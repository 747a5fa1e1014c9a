//! Output of answers: one set of cells in many formats.
//!
//! stdout is for data, stderr for messages. What changes the meaning of the data (lost events, cut
//! rows, caveats) is part of every format that can hold it, and goes to stderr for CSV, TSV, Arrow
//! and Parquet.

mod columnar;
mod csv;
mod destination;
mod facts;
pub mod findings;
mod heat;
mod histogram;
mod json;
mod labels;
mod live;
mod marks;
mod markup;
mod pager;
mod printed;
mod quantity;
pub mod schema;
pub mod schema_finding;
mod select;
mod stream;
mod style;
mod subject;
mod table;
mod terminal;
mod text;
mod timestamps;
mod tree;
mod triggered;
mod write;

#[cfg(test)]
mod tests;

pub use destination::{BUFFER_BYTES, stdout_by, to_file, to_pager, to_stdout};
pub use json::SCHEMA_VERSION;
pub use live::{args_of_many, write_rows_alone};
pub use markup::html as html_text;
pub use stream::{Taker, streams, write_streamed};
pub use style::TextStyle;
pub use subject::Subject;
pub use terminal::{is_on_terminal, wants_color};
pub use timestamps::moment;
pub use whyslow_base::quoted;
pub use write::{duration, has_room_for_notes, print_messages, write, write_into};
