//! `mem`: pages that threads allocated and freed, counted by the second.

use whyslow_model::row::Row;
use whyslow_model::tables::PageCountRow;

use super::{Only, Spec, Topic, View};
use crate::keys::Key;
use crate::query::{Kind, Verb};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Mem,
    about: "Pages of memory allocated and freed",
    examples: "\
  whyslow mem web.wsl                           by process
  whyslow mem web.wsl --by thread
  whyslow mem web.wsl 1 -c mysqld               second by second",
    views: &[View::new(
        Verb::Usage,
        "Pages allocated and freed by process or thread",
        &PAGES,
    )
    .by_time()],
    default: Some(Verb::Usage),
    is_main: false,
};

pub(crate) static PAGES: Spec = Spec {
    kind: Kind::Mem,
    name: "mem",
    rows: "counts of pages",
    table: PageCountRow::TABLE,
    only: Only::Everything,
    class: "",
    classes: &[],
    group: &[Key::Process],
    series: &[],
    size: None,
    errno: None,
    lasting: true,
    owner: "utid",
    stages: &[],
    id_prefix: "pages",
    fields: &[],
};
