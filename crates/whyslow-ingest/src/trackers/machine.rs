//! Mounts, stacked devices, and files of mount namespaces. Snapshots report them repeatedly.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::event::{Body, StateMount, StateResolverFile};
use whyslow_model::tables::{DeviceLinkRow, EmitAll, MountRow, ResolverFileRow};
use whyslow_model::{Sym, stat};

use super::identity::{Here, Output};

/// Maximum number of mounts of all namespaces, and of device links; more than a machine with a
/// thousand containers has.
const KNOWN_MAX: usize = 1 << 18;

#[derive(Debug, Default)]
pub(super) struct MachineTracker {
    /// Namespace, id and mount point: ids are reused.
    mounts: FxHashSet<(i64, i32, Sym)>,
    links: FxHashSet<(i64, i64)>,
    /// Last reported content of each file of a namespace.
    files: FxHashMap<(i64, Sym), (Option<i64>, Sym)>,
    file_rows: i64,
}

impl MachineTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        body: &Body<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        if self.mounts.len() + self.links.len() + self.file_rows as usize >= KNOWN_MAX {
            out.anomalies.count(&stat::MAP_LIMIT, here.ts);
            return;
        }
        match *body {
            Body::StateDeviceLink { dev, below, kind } => {
                let id = self.links.len() as i64;
                if self.links.insert((dev, below)) {
                    out.sink.emit(DeviceLinkRow {
                        id,
                        dev,
                        below,
                        kind: out.symbols.intern_bytes(kind),
                    });
                }
            }
            Body::StateMount(ref mount) => self.mount(mount, out),
            Body::StateResolverFile(ref file) => self.file(file, here, out),
            _ => {}
        }
    }

    fn file<S: EmitAll>(
        &mut self,
        file: &StateResolverFile<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        let path = out.intern(file.path);
        let text = out.intern(file.text);
        let reported = (file.size, text);
        if self.files.insert((file.mount_ns, path), reported) == Some(reported) {
            return;
        }
        let row = ResolverFileRow {
            id: self.file_rows,
            ts: here.ts,
            mount_ns: file.mount_ns,
            path,
            size: file.size,
            text: file.size.map(|_| text),
        };
        self.file_rows += 1;
        out.sink.emit(row);
    }

    fn mount<S: EmitAll>(&mut self, mount: &StateMount<'_>, out: &mut Output<'_, S>) {
        let id = self.mounts.len() as i64;
        let mount_point = out.intern(mount.point);
        if !self.mounts.insert((mount.mount_ns, mount.id, mount_point)) {
            return;
        }
        let row = MountRow {
            id,
            mount_ns: mount.mount_ns,
            mount_id: mount.id,
            parent_id: mount.parent,
            dev: mount.dev,
            root: out.intern(mount.root),
            mount_point,
            fs_type: out.intern(mount.fs),
            source: out.intern(mount.source),
            options: out.intern(mount.options),
        };
        out.sink.emit(row);
    }
}
