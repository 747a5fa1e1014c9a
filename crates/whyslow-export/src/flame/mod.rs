//! Flame graphs: time by stack, merged from the outermost caller.

mod json;
mod leaves;
mod tree;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_analysis::pool_of;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;
use whyslow_store::Tables;

use crate::ExportError;
use crate::profile::Place;
use crate::stacks::{About, Callsites, Frame, FrameKind, Mark, Roots, StackQuery, each_sum};

pub use leaves::compare;
pub use tree::TreeLine;

/// Maximum number of nodes; the thinnest are pruned.
pub const NODES_MAX: usize = 20_000;
/// Index of the root node, which has no frame.
pub const ROOT: usize = 0;
/// Stands for missing stacks.
const NO_STACK: &str = "[no stack]";

/// Time of a function with the same callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Index of the caller; of the root, its own index.
    pub parent: usize,
    /// Index of the frame; meaningless for the root.
    pub frame: usize,
    /// Self time.
    pub self_ns: Ns,
    /// Total time, including callees.
    pub total_ns: Ns,
    /// Self time in the baseline.
    pub base_self_ns: Ns,
    /// Total time in the baseline.
    pub base_total_ns: Ns,
    /// Off-CPU part of the total time, as far as known.
    pub off_ns: Ns,
}

/// Merged stacks of a window, callers first: each caller precedes its callees.
#[derive(Debug, Clone, Default)]
pub struct FlameGraph {
    /// Unique functions; nodes refer to them by index.
    pub frames: Vec<Frame>,
    /// Nodes, starting with the root ([`ROOT`]).
    pub nodes: Vec<Node>,
    /// Whether there is a baseline.
    pub is_compared: bool,
    /// Time of pruned nodes, which counts for their callers.
    pub pruned_ns: Ns,
    /// Number of merged samples.
    pub samples: u64,
    /// Time range, losses and caveats of the merged stacks.
    pub about: About,
}

impl FlameGraph {
    /// Merges the stacks of a query, and those of a baseline.
    pub fn of(
        tables: &dyn Tables,
        query: &StackQuery,
        baseline: Option<&StackQuery>,
    ) -> Result<Self, ExportError> {
        let callsites = Callsites::read(tables)?;
        let mut merged = Merged::new();
        let about = merged.add(tables, query, Side::Here)?;
        if let Some(baseline) = baseline {
            merged.add(tables, baseline, Side::There)?;
        }
        Ok(merged.graph(callsites, about, baseline.is_some()))
    }

    /// Time of all stacks, including those without a frame.
    pub fn total_ns(&self) -> Ns {
        self.nodes.first().map_or(0, |root| root.total_ns)
    }

    /// Time of all stacks of the baseline; 0 without one.
    pub fn base_total_ns(&self) -> Ns {
        self.nodes.first().map_or(0, |root| root.base_total_ns)
    }

    /// Frames of a node, outermost first.
    pub fn path(&self, node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = node;
        while at != ROOT {
            path.push(self.nodes[at].frame);
            at = self.nodes[at].parent;
        }
        path.reverse();
        path
    }

    /// Prunes the thinnest nodes until at most `nodes_max` are left. Their time counts for their
    /// callers, and is summed in `pruned_ns`.
    pub fn prune(&mut self, nodes_max: usize) {
        if self.nodes.len() <= nodes_max.max(1) {
            return;
        }
        let weight = |node: &Node| node.total_ns.max(node.base_total_ns);
        let mut weights: Vec<Ns> = self.nodes.iter().map(weight).collect();
        weights.sort_unstable_by(|a, b| b.cmp(a));
        let least = weights[nodes_max.max(1) - 1];
        // Of nodes with exactly that weight, keep as many as fit.
        let mut room = nodes_max.max(1) - weights.iter().filter(|weight| **weight > least).count();
        let mut places = vec![None; self.nodes.len()];
        let mut kept: Vec<Node> = Vec::new();
        for (place, node) in self.nodes.iter().enumerate() {
            let parent = places[node.parent];
            let of_equals = weight(node) == least && room > 0;
            let is_kept =
                place == ROOT || (parent.is_some() && (weight(node) > least || of_equals));
            if !is_kept {
                continue;
            }
            if weight(node) == least {
                room = room.saturating_sub(1);
            }
            places[place] = Some(kept.len());
            let parent = parent.unwrap_or(ROOT);
            kept.push(Node { parent, ..*node });
        }
        for (place, node) in self.nodes.iter().enumerate() {
            let parent = places[node.parent];
            if let (None, Some(parent)) = (places[place], parent) {
                self.pruned_ns = self.pruned_ns.saturating_add(node.total_ns);
                kept[parent].self_ns = kept[parent].self_ns.saturating_add(node.total_ns);
                let base = &mut kept[parent].base_self_ns;
                *base = base.saturating_add(node.base_total_ns);
            }
        }
        self.nodes = kept;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Here,
    There,
}

/// Time by thread name, stack and side, before frames are merged.
struct Merged {
    names: Names,
    /// Time of the window, of the baseline, and off-CPU time of the window.
    times: FxHashMap<(usize, Place), [Ns; 3]>,
    samples: u64,
}

impl Merged {
    fn new() -> Self {
        Self {
            names: Names::default(),
            times: FxHashMap::default(),
            samples: 0,
        }
    }

    fn add(
        &mut self,
        tables: &dyn Tables,
        query: &StackQuery,
        side: Side,
    ) -> Result<About, ExportError> {
        each_sum(tables, query, &mut |sample, count| {
            let comm = sample.comm.unwrap_or("?");
            let name = match query.roots {
                Roots::Comm => self.names.place(comm),
                Roots::Pool => self.names.place(&pool_of(comm)),
                Roots::Nothing => self.names.place(""),
            };
            let times = self.times.entry((name, sample.place())).or_default();
            let time = &mut times[usize::from(side == Side::There)];
            *time = time.saturating_add(sample.dur);
            if side == Side::Here && sample.is_off_cpu() {
                times[2] = times[2].saturating_add(sample.dur);
            }
            if side == Side::Here {
                self.samples += count.cast_unsigned();
            }
        })
    }

    fn graph(self, callsites: Callsites, about: About, is_compared: bool) -> FlameGraph {
        let mut frames = Frames::default();
        let mut tree = Tree::default();
        for ((name, place), times) in &self.times {
            let stack = callsites.stack(*place);
            let mut path = Vec::with_capacity(stack.len() + 1);
            // A stop of all threads belongs to no thread.
            let name = self.names.all[*name].as_str();
            if !name.is_empty() && place.1 != Some(Mark::Stopped) {
                path.push(frames.named(name, FrameKind::Thread));
            }
            path.extend(
                stack
                    .iter()
                    .map(|place| frames.merged(&callsites.frames[*place])),
            );
            if stack.is_empty() {
                path.push(frames.named(NO_STACK, FrameKind::User));
            }
            tree.add(&path, *times);
        }
        let (frames, nodes) = tree.in_order(frames);
        FlameGraph {
            frames,
            nodes,
            is_compared,
            pruned_ns: 0,
            samples: self.samples,
            about,
        }
    }
}

/// Frames with the same name, module and kind are merged, whatever their address.
#[derive(Default)]
struct Frames {
    all: Vec<Frame>,
    known: FxHashMap<(String, Option<String>, FrameKind), usize>,
}

impl Frames {
    fn merged(&mut self, frame: &Frame) -> usize {
        let key = (frame.name.clone(), frame.module.clone(), frame.kind);
        *self.known.entry(key).or_insert_with(|| {
            self.all.push(frame.clone());
            self.all.len() - 1
        })
    }

    fn named(&mut self, name: &str, kind: FrameKind) -> usize {
        self.merged(&Frame {
            name: name.to_owned(),
            module: None,
            kind,
            address: 0,
        })
    }
}

/// Unique thread names.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    known: FxHashMap<String, usize>,
}

impl Names {
    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.known.get(name) {
            return *place;
        }
        self.all.push(name.to_owned());
        self.known.insert(name.to_owned(), self.all.len() - 1);
        self.all.len() - 1
    }
}

/// A tree under construction.
#[derive(Default)]
struct Tree {
    here: Ns,
    there: Ns,
    off: Ns,
    children: FxHashMap<usize, Tree>,
}

impl Tree {
    fn add(&mut self, path: &[usize], [here, there, off]: [Ns; 3]) {
        let mut at = self;
        for frame in path {
            at = at.children.entry(*frame).or_default();
        }
        at.here = at.here.saturating_add(here);
        at.there = at.there.saturating_add(there);
        at.off = at.off.saturating_add(off);
    }

    /// Sorts frames by name, and nodes by the index of their caller: the same stacks give the same
    /// bytes, in whatever order they came.
    fn in_order(self, frames: Frames) -> (Vec<Frame>, Vec<Node>) {
        let mut places: Vec<usize> = (0..frames.all.len()).collect();
        places.index_sort_by(|a, b| frames.all[*a].cmp(&frames.all[*b]));
        let mut renamed = vec![0; places.len()];
        for (new, old) in places.iter().enumerate() {
            renamed[*old] = new;
        }
        let mut nodes = Vec::new();
        // Iterative, since deep stacks could overflow ours.
        let mut waiting: Vec<(usize, usize, Tree)> = vec![(ROOT, 0, self)];
        while let Some((parent, frame, mut tree)) = waiting.pop() {
            let place = nodes.len();
            nodes.push(Node {
                parent,
                frame,
                self_ns: tree.here,
                total_ns: tree.here,
                base_self_ns: tree.there,
                base_total_ns: tree.there,
                off_ns: tree.off,
            });
            let children: BTreeMap<usize, Tree> = tree
                .children
                .drain()
                .map(|(frame, child)| (renamed[frame], child))
                .collect();
            let children = children.into_iter().rev();
            waiting.extend(children.map(|(frame, child)| (place, frame, child)));
        }
        for place in (1..nodes.len()).rev() {
            let Node {
                parent,
                total_ns,
                base_total_ns,
                off_ns,
                ..
            } = nodes[place];
            let above: &mut Node = &mut nodes[parent];
            above.total_ns = above.total_ns.saturating_add(total_ns);
            above.base_total_ns = above.base_total_ns.saturating_add(base_total_ns);
            above.off_ns = above.off_ns.saturating_add(off_ns);
        }
        let mut sorted = frames.all;
        sorted.index_sort();
        (sorted, nodes)
    }
}

impl Drop for Tree {
    /// Without this, dropping a stack of a thousand frames would recurse as deeply.
    fn drop(&mut self) {
        let mut waiting: Vec<Tree> = self.children.drain().map(|(_, child)| child).collect();
        while let Some(mut tree) = waiting.pop() {
            waiting.extend(tree.children.drain().map(|(_, child)| child));
        }
    }
}
