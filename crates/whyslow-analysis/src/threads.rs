//! Names of processes and devices by id, and the threads that belong to the tracer.

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::Ns;
use whyslow_model::recorder::RECORDER_PID;
use whyslow_model::row::Row;
use whyslow_model::tables::{DeviceRow, MetadataRow, ProcessRow, ThreadRow};
use whyslow_store::Tables;

use crate::AnalysisError;
use crate::flags::Machine;
use crate::fold::in_order;
use crate::globs::PathGlobs;
use crate::key::{Key, KeyValue, ProcessAttribute};
use crate::owners::{Owners, ProcessName};
use crate::query::DeviceRef;
use crate::recorded::RecordedTopics;
use crate::scan::Projection;

/// Threads and processes of the tracer, by recording-unique id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracers {
    pub(crate) utids: FxHashSet<i64>,
    pub(crate) upids: FxHashSet<i64>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadName {
    pub(crate) tid: i64,
    pub(crate) comm: Option<String>,
}

/// The processes and the tracer's threads: small tables, read once per query.
#[derive(Debug, Default)]
pub(crate) struct Names {
    processes: FxHashMap<i64, ProcessName>,
    threads: FxHashMap<i64, ThreadName>,
    /// User names by uid.
    users: FxHashMap<i64, String>,
    pub(crate) tracers: Tracers,
    /// Name, major and minor number of each device.
    devices: Vec<(String, i64, i64)>,
    /// The machine, for flags whose values depend on it.
    pub(crate) machine: Machine,
    /// What the sources recorded.
    pub(crate) recorded: RecordedTopics,
    /// Our own recorder identified itself in the recording.
    pub(crate) has_recorder: bool,
    /// Configured sampling interval of a profiler.
    pub(crate) sample_interval: Option<Ns>,
}

impl Names {
    fn read_metadata(&mut self, tables: &dyn Tables) -> Result<(), AnalysisError> {
        let mut projection = Projection::new(MetadataRow::TABLE);
        let [key, value] = ["key", "value"].map(|name| projection.need(name));
        in_order(tables, &projection.scan(None), |batch| {
            let (key, value) = (key.texts(batch)?, value.texts(batch)?);
            for row in 0..batch.num_rows() as u32 {
                match (key.get(row), value.get(row)) {
                    (Some("kernel_release"), Some(release)) => {
                        self.machine = Machine::of_release(release);
                    }
                    (Some(RECORDER_PID), Some(_)) => self.has_recorder = true,
                    (Some("sample_interval_ns"), Some(interval)) => {
                        self.sample_interval = interval.parse().ok();
                    }
                    (Some(key), Some(value)) => self.recorded.add(key, value),
                    _ => {}
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    pub(crate) fn read(tables: &dyn Tables) -> Result<Self, AnalysisError> {
        let mut names = Names {
            recorded: RecordedTopics::of_sources(tables.info()),
            has_recorder: false,
            ..Names::default()
        };
        names.read_metadata(tables)?;
        names.read_processes(tables)?;
        let mut projection = Projection::new(ThreadRow::TABLE);
        let [utid, upid] = ["utid", "upid"].map(|name| projection.need(name));
        let (tid, comm) = (projection.need("tid"), projection.need("comm"));
        let is_tracer = projection.need("is_tracer");
        let mut owners = Vec::new();
        in_order(tables, &projection.scan(None), |batch| {
            let (utid, upid) = (utid.ints(batch)?, upid.ints(batch)?);
            let (tid, comm) = (tid.ints(batch)?, comm.texts(batch)?);
            let is_tracer = is_tracer.bools(batch)?;
            for row in 0..batch.num_rows() as u32 {
                let owner = upid.get(row);
                owners.push((utid.at(row), owner));
                let name = ThreadName {
                    tid: tid.at(row),
                    comm: comm.get(row).map(str::to_owned),
                };
                names.threads.insert(utid.at(row), name);
                if is_tracer.value(row as usize) {
                    names.tracers.utids.insert(utid.at(row));
                    names.tracers.upids.extend(owner);
                }
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        for (utid, owner) in owners {
            if owner.is_some_and(|upid| names.tracers.upids.contains(&upid)) {
                names.tracers.utids.insert(utid);
            }
        }
        names.devices = devices(tables)?;
        Ok(names)
    }

    fn read_processes(&mut self, tables: &dyn Tables) -> Result<(), AnalysisError> {
        let mut projection = Projection::new(ProcessRow::TABLE);
        let [upid, pid] = ["upid", "pid"].map(|name| projection.need(name));
        let (comm, exe) = (projection.need("comm"), projection.need("exe"));
        let [command_line, user] = ["command_line", "user_name"].map(|name| projection.need(name));
        let [cgroup, container] = ["cgroup", "container"].map(|name| projection.need(name));
        let [uid, mount_ns] = ["uid", "mount_ns"].map(|name| projection.need(name));
        let [parent, ppid] = ["parent_upid", "ppid"].map(|name| projection.need(name));
        let is_tracer = projection.need("is_tracer");
        in_order(tables, &projection.scan(None), |batch| {
            let (upid, pid) = (upid.ints(batch)?, pid.ints(batch)?);
            let (parent, ppid) = (parent.ints(batch)?, ppid.ints(batch)?);
            let (comm, exe) = (comm.texts(batch)?, exe.texts(batch)?);
            let (command_line, user) = (command_line.texts(batch)?, user.texts(batch)?);
            let (cgroup, container) = (cgroup.texts(batch)?, container.texts(batch)?);
            let (uid, is_tracer) = (uid.ints(batch)?, is_tracer.bools(batch)?);
            let mount_ns = mount_ns.ints(batch)?;
            for row in 0..batch.num_rows() as u32 {
                if let (Some(uid), Some(user)) = (uid.get(row), user.get(row)) {
                    self.users.entry(uid).or_insert_with(|| user.to_owned());
                }
                let number = || uid.get(row).map(|uid| uid.to_string());
                let name = ProcessName {
                    pid: pid.at(row),
                    parent: parent.get(row),
                    ppid: ppid.get(row),
                    comm: comm.get(row).map(str::to_owned),
                    exe: exe.get(row).map(str::to_owned),
                    command_line: command_line.get(row).map(str::to_owned),
                    uid: uid.get(row),
                    user: user.get(row).map(str::to_owned).or_else(number),
                    cgroup: cgroup.get(row).map(str::to_owned),
                    container: container.get(row).map(str::to_owned),
                    mount_ns: mount_ns.get(row),
                };
                if is_tracer.value(row as usize) {
                    self.tracers.upids.insert(upid.at(row));
                }
                self.processes.insert(upid.at(row), name);
            }
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        Ok(())
    }

    /// Name of a user, if a process of this user was recorded.
    pub(crate) fn user(&self, uid: i64) -> Option<&str> {
        self.users.get(&uid).map(String::as_str)
    }

    /// This attribute of each process.
    pub(crate) fn owners(&self, attribute: ProcessAttribute) -> Arc<Owners> {
        let processes = self.processes.iter();
        Owners::new(attribute, processes.map(|(upid, process)| (*upid, process)))
    }

    pub(crate) fn thread(&self, utid: i64) -> Option<&ThreadName> {
        self.threads.get(&utid)
    }

    /// Command line of the process, or the file that it runs.
    pub(crate) fn command(&self, upid: Option<i64>) -> Option<String> {
        let process = self.process(upid?)?;
        process.command_line.clone().or_else(|| process.exe.clone())
    }

    /// Processes whose control group path matches.
    pub(crate) fn of_cgroups(&self, globs: &[String]) -> Result<FxHashSet<i64>, AnalysisError> {
        let globs = PathGlobs::new(globs)?;
        let is_in = |process: &ProcessName| {
            let cgroup = process.cgroup.as_deref();
            cgroup.is_some_and(|cgroup| globs.is_match(cgroup))
        };
        let found = self.processes.iter().filter(|(_, process)| is_in(process));
        Ok(found.map(|(upid, _)| *upid).collect())
    }

    /// Names of the tracer's processes, in order.
    pub(crate) fn tracer_names(&self) -> Vec<String> {
        let processes = self
            .tracers
            .upids
            .iter()
            .filter_map(|upid| self.process(*upid));
        let mut names: Vec<String> = processes
            .map(|process| {
                format!(
                    "{} ({})",
                    process.comm.as_deref().unwrap_or("?"),
                    process.pid
                )
            })
            .collect();
        names.sort_unstable();
        names
    }

    /// Whether a group of rows belongs to the tracer, as far as its keys show.
    pub(crate) fn is_tracer(&self, keys: &[Key], group: &[KeyValue]) -> bool {
        let any = |test: &dyn Fn(&ProcessName) -> bool| {
            let upids = self.tracers.upids.iter();
            upids.filter_map(|upid| self.process(*upid)).any(test)
        };
        keys.iter()
            .zip(group)
            .any(|(key, value)| match (key, value) {
                (Key::Process, KeyValue::Int(upid)) => self.tracers.upids.contains(upid),
                (Key::Pid, KeyValue::Int(pid)) => any(&|process| process.pid == *pid),
                (Key::Comm, KeyValue::Text(comm)) => {
                    any(&|process| process.comm.as_deref() == Some(comm.as_ref()))
                }
                _ => false,
            })
    }

    /// `sda (8:0)`; as written in the query if the recording does not have it.
    pub(crate) fn device(&self, device: &DeviceRef) -> String {
        let known = self
            .devices
            .iter()
            .find(|(name, major, minor)| match device {
                DeviceRef::Name(wanted) => name == wanted,
                DeviceRef::Number { major: a, minor: b } => {
                    (*major, *minor) == (i64::from(*a), i64::from(*b))
                }
            });
        known.map_or_else(
            || device.to_string(),
            |(name, major, minor)| format!("{name} ({major}:{minor})"),
        )
    }

    pub(crate) fn process(&self, upid: i64) -> Option<&ProcessName> {
        self.processes.get(&upid)
    }

    /// The parent of a process: `bash (1234)`, or only its id.
    pub(crate) fn parent(&self, upid: i64) -> Option<String> {
        let process = self.process(upid)?;
        let parent = process.parent.and_then(|parent| self.process(parent));
        let comm = parent.and_then(|parent| parent.comm.as_deref());
        match (comm, parent.map(|parent| parent.pid).or(process.ppid)?) {
            (Some(comm), pid) if !comm.is_empty() => Some(format!("{comm} ({pid})")),
            (_, pid) => Some(pid.to_string()),
        }
    }
}

fn devices(tables: &dyn Tables) -> Result<Vec<(String, i64, i64)>, AnalysisError> {
    let mut projection = Projection::new(DeviceRow::TABLE);
    let [major, minor] = ["major", "minor"].map(|name| projection.need(name));
    let name = projection.need("name");
    let mut devices = Vec::new();
    in_order(tables, &projection.scan(None), |batch| {
        let (major, minor) = (major.ints(batch)?, minor.ints(batch)?);
        let name = name.texts(batch)?;
        for row in 0..batch.num_rows() as u32 {
            let name = name.get(row).unwrap_or_default().to_owned();
            devices.push((name, major.at(row), minor.at(row)));
        }
        Ok(std::ops::ControlFlow::Continue(()))
    })?;
    Ok(devices)
}
