//! A flame graph as a self-contained SVG file with zoom and search, which loads nothing.
//!
//! The script is the same in all files; names appear only in text nodes. Without the script, the
//! file is a picture with tooltips.

mod chart;

pub use chart::{Chart, write_chart};

use std::fmt::Write as _;
use std::io::{self, Write};

use whyslow_model::Ns;
use whyslow_model::text::shown;

use crate::flame::{FlameGraph, Node, ROOT};
use crate::stacks::FrameKind;

/// Texts of the picture.
#[derive(Debug, Clone, Default)]
pub struct SvgLook {
    /// Title.
    pub title: String,
    /// Subtitle: recording, window, filter.
    pub subtitle: String,
    /// Lines below the picture.
    pub notes: Vec<String>,
}

const WIDTH: f64 = 1200.0;
const ROW: usize = 17;
const TOP: usize = 62;
const FOOT: usize = 26;
/// Thinner boxes cannot be seen.
const THINNEST: f64 = 0.1;
/// Approximate width of a character.
const CHARACTER: f64 = 6.7;
const STYLE: &str = include_str!("flame.css");
const SCRIPT: &str = include_str!("flame.js");

/// Writes the picture, callers above.
pub fn write_svg(graph: &FlameGraph, look: &SvgLook, out: &mut dyn Write) -> io::Result<()> {
    let boxes = boxes(graph);
    let depth = boxes.iter().map(|one| one.depth + 1).max().unwrap_or(1);
    let height = TOP + depth * ROW + FOOT + look.notes.len() * ROW;
    write_head(look, (height, ""), out)?;
    for one in &boxes {
        write_box(graph, one, out)?;
    }
    if boxes.is_empty() {
        let y = TOP + 12;
        writeln!(
            out,
            "<text x=\"8\" y=\"{y}\">no stacks in this window</text>"
        )?;
    }
    write_foot(look, TOP + depth * ROW, out)
}

/// Writes the head, with attributes for the group of boxes.
fn write_head(
    look: &SvgLook,
    (height, marks): (usize, &str),
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" \
         preserveAspectRatio=\"xMidYMin meet\" role=\"img\" aria-labelledby=\"title\">\n\
         <title id=\"title\">{}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"back\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"head\" x=\"8\" y=\"20\">{}</text>\n\
         <text class=\"quiet\" x=\"8\" y=\"38\">{}</text>\n",
        escaped(&look.title),
        escaped(&look.title),
        escaped(&look.subtitle),
    )?;
    write!(
        out,
        "<text class=\"tool\" id=\"all\" x=\"8\" y=\"55\" tabindex=\"0\" role=\"button\">whole graph</text>\n\
         <text class=\"tool\" id=\"search\" x=\"110\" y=\"55\" tabindex=\"0\" role=\"button\">search (/)</text>\n\
         <text class=\"quiet\" id=\"found\" x=\"200\" y=\"55\"></text>\n\
         <text class=\"quiet\" id=\"tooltip\" x=\"8\" y=\"{}\"></text>\n<g id=\"boxes\"{marks}>\n",
        height - 9
    )
}

/// Notes and the script.
fn write_foot(look: &SvgLook, below: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "</g>")?;
    for (line, note) in look.notes.iter().enumerate() {
        let y = below + (line + 1) * ROW;
        writeln!(
            out,
            "<text class=\"quiet note\" x=\"8\" y=\"{y}\">{}</text>",
            escaped(note)
        )?;
    }
    write!(out, "<script><![CDATA[{SCRIPT}]]></script>\n</svg>\n")
}

struct Placed {
    node: usize,
    depth: usize,
    left: f64,
    width: f64,
}

/// Children side by side in their order, below their caller.
fn boxes(graph: &FlameGraph) -> Vec<Placed> {
    let total = graph.total_ns().max(1) as f64;
    let mut left = vec![0.0; graph.nodes.len()];
    let mut next = vec![0.0; graph.nodes.len()];
    let mut depth = vec![0; graph.nodes.len()];
    let mut boxes = Vec::new();
    for (place, node) in graph.nodes.iter().enumerate() {
        let width = node.total_ns as f64 / total * WIDTH;
        if place != ROOT {
            left[place] = next[node.parent];
            next[node.parent] += width;
            depth[place] = depth[node.parent] + 1;
        }
        next[place] = left[place];
        if width >= THINNEST {
            boxes.push(Placed {
                node: place,
                depth: depth[place],
                left: left[place],
                width,
            });
        }
    }
    boxes
}

fn write_box(graph: &FlameGraph, placed: &Placed, out: &mut dyn Write) -> io::Result<()> {
    let node = &graph.nodes[placed.node];
    let frame = (placed.node != ROOT).then(|| &graph.frames[node.frame]);
    let name = frame.map_or("all", |frame| frame.name.as_str());
    let mut tooltip = shown(name, false).into_owned();
    if let Some(module) = frame.and_then(|frame| frame.module.as_deref()) {
        let _ = write!(tooltip, " in {}", shown(module, false));
    }
    let share = node.total_ns as f64 / graph.total_ns().max(1) as f64 * 100.0;
    let _ = write!(
        tooltip,
        ": {} ({share:.1} %), {} ns",
        length(node.total_ns),
        node.total_ns
    );
    if node.self_ns > 0 {
        let _ = write!(tooltip, ", self {}", length(node.self_ns));
    }
    if graph.is_compared {
        let _ = write!(tooltip, ", baseline {}", length(node.base_total_ns));
    }
    let y = TOP + placed.depth * ROW;
    let room = ((placed.width - 6.0) / CHARACTER) as usize;
    let label = if room < 3 {
        String::new()
    } else {
        cut(&shown(name, false), room)
    };
    writeln!(
        out,
        "<g class=\"{}\"><title>{}</title><rect x=\"{:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\"/>\
         <text x=\"{:.2}\" y=\"{}\">{}</text></g>",
        class(
            graph,
            node,
            frame.map_or(FrameKind::Thread, |frame| frame.kind)
        ),
        escaped(&tooltip),
        placed.left,
        placed.width,
        ROW - 1,
        placed.left + 3.0,
        y + 12,
        escaped(&label),
    )
}

/// Separates kernel and program; with a baseline, increased and decreased shares.
fn class(graph: &FlameGraph, node: &Node, kind: FrameKind) -> String {
    if !graph.is_compared {
        let is_off = node.off_ns.saturating_mul(2) > node.total_ns;
        let off = if is_off && kind != FrameKind::Mark {
            " off"
        } else {
            ""
        };
        return format!("{}{off}", of_kind(kind));
    }
    let share = |part: Ns, whole: Ns| part as f64 / whole.max(1) as f64;
    let here = share(node.total_ns, graph.total_ns());
    let there = share(node.base_total_ns, graph.base_total_ns());
    let strength = (((here - there).abs() * 16.0).ceil() as usize).min(4);
    match strength {
        0 => "same".to_owned(),
        _ if here > there => format!("more{strength}"),
        _ => format!("less{strength}"),
    }
}

fn of_kind(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Kernel => "k",
        FrameKind::User => "u",
        FrameKind::Managed => "m",
        FrameKind::Mark => "b",
        FrameKind::Thread => "same",
    }
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(room.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Three digits and a unit.
fn length(ns: Ns) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let value = ns as f64;
    let unit = units.iter().find(|(scale, _)| value.abs() >= *scale);
    let Some((scale, unit)) = unit else {
        return format!("{ns} ns");
    };
    let value = value / scale;
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {unit}")
}

/// Text escaped for XML; characters that XML forbids have been replaced before.
fn escaped(text: &str) -> String {
    let text = shown(text, false);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
