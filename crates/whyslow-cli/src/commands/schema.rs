use whyslow_base::failure::Failure;
use whyslow_render::{schema, schema_finding, to_stdout};

use crate::cli::{SchemaArgs, SchemaKind};

pub(super) fn run(args: &SchemaArgs) -> Result<(), Failure> {
    let schema = match args.what {
        SchemaKind::Answer => schema::answer(),
        SchemaKind::Ndjson => schema::ndjson(),
        SchemaKind::Progress => schema::progress(),
        SchemaKind::Explanation => schema_finding::report(),
    };
    to_stdout(&format!("{schema:#}\n"))
}
