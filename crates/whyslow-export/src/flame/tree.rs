//! A graph as lines of text, callers first, sorted by time.

use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::{FlameGraph, Node, ROOT};
use crate::stacks::Frame;

/// A function with the same callers.
#[derive(Debug, Clone, Copy)]
pub struct TreeLine<'g> {
    /// Function of the node.
    pub frame: &'g Frame,
    /// Times of the node.
    pub node: &'g Node,
    /// Number of callers above it.
    pub depth: usize,
    /// Number of callers above it that have several callees: the indentation.
    pub indent: usize,
}

/// Callees with a smaller share of their caller's time do not count as a branch.
const ALL_OF_IT: f64 = 0.999;

impl FlameGraph {
    /// The lines of all nodes.
    pub fn lines(&self) -> Vec<TreeLine<'_>> {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent].push(place);
        }
        let weight = |place: &usize| -> Ns {
            let node = &self.nodes[*place];
            node.total_ns.max(node.base_total_ns)
        };
        for of in &mut children {
            of.index_sort_by_key(|place| (weight(place), std::cmp::Reverse(*place)));
        }
        let mut lines = Vec::with_capacity(self.nodes.len());
        // Iterative, since deep stacks could overflow ours.
        let mut waiting: Vec<(usize, usize, usize)> =
            children[ROOT].iter().map(|place| (*place, 0, 0)).collect();
        while let Some((place, depth, indent)) = waiting.pop() {
            let node = &self.nodes[place];
            lines.push(TreeLine {
                frame: &self.frames[node.frame],
                node,
                depth,
                indent,
            });
            let is_chain = match children[place].as_slice() {
                [only] => weight(only) as f64 >= ALL_OF_IT * weight(&place) as f64,
                _ => false,
            };
            let inner = indent + usize::from(!is_chain);
            waiting.extend(
                children[place]
                    .iter()
                    .map(|child| (*child, depth + 1, inner)),
            );
        }
        lines
    }
}
