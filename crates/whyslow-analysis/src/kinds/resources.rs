//! `use`: utilisation, saturation and errors of every resource (USE method).

use whyslow_model::row::Row;
use whyslow_model::tables::CpuRow;

use crate::query::{Kind, Verb};
use crate::spec::{Hooks, Spec, Topic, View};

pub(crate) static TOPIC: Topic = Topic {
    kind: Kind::Use,
    about: "Utilisation, saturation and errors of each resource",
    examples: "\
  whyslow use web.wsl                           utilisation, saturation and errors
  whyslow use web.wsl -w op:17                  during operation 17",
    views: &[View::new(
        Verb::Usage,
        "CPUs, disks and interfaces in one table",
        &RESOURCES,
    )],
    default: Some(Verb::Usage),
    is_main: false,
};

static RESOURCES: Spec = Spec {
    kind: Kind::Use,
    name: "use",
    rows: "resources",
    table: CpuRow::TABLE,
    only: &[],
    class: "",
    classes: &[],
    group: &[],
    series: &[],
    size: None,
    errno: None,
    lasting: true,
    owner: "",
    stages: &[],
    id_prefix: "",
    fields: &[],
    hooks: Hooks::NONE,
};
