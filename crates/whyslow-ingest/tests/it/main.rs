//! Imports: the results for files of other tools, compared with the output of other programs for
//! the same files.

mod archives;
mod blktrace;
mod common;
mod ctf2_import;
mod ctf2_metadata;
mod ctf_damage;
mod ctf_metadata;
mod ctf_metadata_faults;
mod ctf_oracle;
mod ctf_streams;
mod ctf_tsdl;
mod ftrace;
mod ground_truth;
mod import_data;
mod jfr;
mod jstack;
mod live_reports;
mod live_snoops;
mod live_texts;
mod lookups;
mod lttng_analyses;
mod lttng_analyses_io;
mod perf;
mod pprof;
mod profile_locks;
mod requests;
mod requests_joined;
mod samplers;
mod spool;
mod spool_functions;
mod spool_host;
mod spool_stacks;
mod strace;
mod support;
mod tracedat;
