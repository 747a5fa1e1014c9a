//! Files that processes access through memory mappings: their reads and writes are no system calls.

use std::collections::BTreeMap;

use whyslow_model::sort::IndexSort;
use whyslow_model::text::grouped;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::kinds::{MAPPINGS, SYSCALLS};
use crate::pass::Summing;
use crate::query::Filter;
use crate::scan::{ColumnRef, Ints, Texts};

/// Processes that are named; of more, those with the most bytes.
const NAMED: usize = 3;
/// Classes of objects that are sockets.
const SOCKETS: [&str; 4] = ["inet", "inet6", "unix", "socket"];

/// Mapped files of a process.
#[derive(Default)]
struct Mapped {
    bytes: i64,
    /// The largest one.
    largest: (i64, Box<str>),
}

/// Processes that access files through memory mappings, and those of them that send what may be the
/// content of such a file. Code, which every process maps, is excluded: executable mappings, and all
/// mappings of files that have one.
pub(crate) fn caveats(context: &Context<'_>) -> Result<Vec<String>, AnalysisError> {
    if !context.has(MAPPINGS.table.name) {
        return Ok(Vec::new());
    }
    let filter = Filter {
        files: context.query.filter.files.clone(),
        ..processes_of(context)
    };
    let mut pass = context.pass_of(&MAPPINGS, &[Key::Process, Key::File], &filter)?;
    let mappings = Mappings {
        bytes: pass.projection.need("bytes"),
        prot: pass.projection.need("prot"),
        path: pass.projection.need("path"),
    };
    let mut processes: BTreeMap<KeyValue, Mapped> = BTreeMap::new();
    for (group, sum) in pass.run(context.tables, &mappings)? {
        if let ([process, KeyValue::Text(path)], false) = (group.as_slice(), sum.executable) {
            let mapped = processes.entry(process.clone()).or_default();
            mapped.bytes += sum.bytes;
            if sum.bytes > mapped.largest.0 {
                mapped.largest = (sum.bytes, path.clone());
            }
        }
    }
    processes.retain(|_, mapped| mapped.bytes > 0);
    if processes.is_empty() {
        return Ok(Vec::new());
    }
    let mut caveats = vec![invisible(context, &processes)];
    caveats.extend(sent(context, &processes)?);
    Ok(caveats)
}

/// The processes of the query.
fn processes_of(context: &Context<'_>) -> Filter {
    let filter = &context.query.filter;
    Filter {
        pids: filter.pids.clone(),
        comms: filter.comms.clone(),
        no_tracer: filter.no_tracer,
        ..Filter::default()
    }
}

fn invisible(context: &Context<'_>, processes: &BTreeMap<KeyValue, Mapped>) -> String {
    let mut ranked: Vec<_> = processes.iter().collect();
    ranked.index_sort_by(|(process_a, a), (process_b, b)| {
        b.bytes.cmp(&a.bytes).then_with(|| process_a.cmp(process_b))
    });
    let others = ranked.len().saturating_sub(NAMED);
    let named = ranked.iter().take(NAMED);
    let mut named: Vec<String> = named
        .map(|(process, mapped)| {
            format!(
                "{} ({} B)",
                Key::Process.label(process, &context.names),
                mapped.bytes
            )
        })
        .collect();
    if others > 0 {
        named.push(format!("{others} more"));
    }
    format!(
        "files were mapped into memory by {}: reads and writes through mappings are not visible as \
         system calls",
        named.join(", ")
    )
}

/// Processes that wrote to sockets and have files mapped: the bytes may come from a file that no
/// call shows.
fn sent(
    context: &Context<'_>,
    processes: &BTreeMap<KeyValue, Mapped>,
) -> Result<Option<String>, AnalysisError> {
    if !context.has(SYSCALLS.table.name) {
        return Ok(None);
    }
    let keys = [Key::Process, Key::FdClass, Key::Op];
    let mut pass = context.pass_of(&SYSCALLS, &keys, &processes_of(context))?;
    let bytes = Bytes(pass.projection.need("bytes"));
    let mut sent: BTreeMap<KeyValue, i64> = BTreeMap::new();
    for (group, bytes) in pass.run(context.tables, &bytes)? {
        if let [process, KeyValue::Text(class), KeyValue::Text(op)] = group.as_slice()
            && SOCKETS.contains(&&**class)
            && &**op == "write"
            && processes.contains_key(process)
        {
            *sent.entry(process.clone()).or_default() += bytes;
        }
    }
    let mut sent: Vec<(KeyValue, i64)> = sent.into_iter().filter(|(_, sum)| *sum > 0).collect();
    sent.index_sort_by(|(process_a, a), (process_b, b)| {
        b.cmp(a).then_with(|| process_a.cmp(process_b))
    });
    let named = sent.iter().take(NAMED).filter_map(|(process, bytes)| {
        let (size, path) = &processes.get(process)?.largest;
        Some(format!(
            "{} wrote {} B to sockets and has {path} mapped ({} B)",
            Key::Process.label(process, &context.names),
            grouped(bytes.unsigned_abs()),
            grouped(size.unsigned_abs()),
        ))
    });
    let named: Vec<String> = named.collect();
    Ok((!named.is_empty()).then(|| {
        format!(
            "bytes written to sockets may come from mapped files: {}",
            named.join("; ")
        )
    }))
}

struct Bytes(ColumnRef);

impl Summing for Bytes {
    type Columns<'b> = Ints<'b>;
    type Sum = i64;

    fn columns<'b>(
        &self,
        batch: &'b arrow_array::RecordBatch,
        _: Spot,
    ) -> Result<Ints<'b>, AnalysisError> {
        self.0.ints(batch)
    }

    fn add(&self, sum: &mut i64, bytes: &Ints<'_>, row: u32) {
        *sum += bytes.or_zero(row);
    }

    fn merge(&self, sum: &mut i64, other: i64) {
        *sum += other;
    }
}

struct Mappings {
    bytes: ColumnRef,
    prot: ColumnRef,
    path: ColumnRef,
}

#[derive(Default)]
struct MappingSum {
    bytes: i64,
    executable: bool,
}

impl Summing for Mappings {
    type Columns<'b> = (Ints<'b>, Ints<'b>, Texts<'b>);
    type Sum = MappingSum;

    fn columns<'b>(
        &self,
        batch: &'b arrow_array::RecordBatch,
        _: Spot,
    ) -> Result<Self::Columns<'b>, AnalysisError> {
        let (bytes, prot) = (self.bytes.ints(batch)?, self.prot.ints(batch)?);
        Ok((bytes, prot, self.path.texts(batch)?))
    }

    fn add(&self, sum: &mut MappingSum, (bytes, prot, path): &Self::Columns<'_>, row: u32) {
        const PROT_EXEC: i64 = 4;
        let is_library = |path: &str| {
            path.ends_with(".so") || path.contains(".so.") || path.ends_with("/ld.so.cache")
        };
        sum.bytes += bytes.at(row);
        sum.executable |= prot.get(row).is_some_and(|prot| prot & PROT_EXEC != 0)
            || path.get(row).is_some_and(is_library);
    }

    fn merge(&self, sum: &mut MappingSum, other: MappingSum) {
        sum.bytes += other.bytes;
        sum.executable |= other.executable;
    }
}
