//! Stacks over time: a strip per thread, with time on the x axis. Consecutive samples in the same
//! function are one box.

use std::fmt::Write as _;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;
use whyslow_model::text::shown;
use whyslow_store::Tables;

use super::{CHARACTER, FOOT, ROW, SvgLook, THINNEST, TOP, WIDTH};
use super::{cut, escaped, length, of_kind, write_foot, write_head};
use crate::ExportError;
use crate::profile::{Place, Thread, Threads};
use crate::stacks::{About, Callsites, FrameKind, StackQuery, each_sample};

/// Maximum number of boxes in a picture.
const BOXES_MAX: usize = 60_000;
/// Samples farther apart than this share of the picture are separate boxes.
const APART: f64 = THINNEST / WIDTH;

/// A function that a thread was in continuously.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    begin: Ns,
    end: Ns,
    depth: usize,
    frame: usize,
    off: Ns,
}

#[derive(Debug, Default)]
struct Strip {
    done: Vec<Stretch>,
    /// Open boxes by depth.
    open: Vec<Stretch>,
    busy: Ns,
}

/// Stacks of each thread over time.
#[derive(Debug)]
pub struct Chart {
    callsites: Callsites,
    /// Name and strip, busiest first.
    strips: Vec<(String, Strip)>,
    /// Time range, losses and caveats of the samples.
    pub about: About,
    /// Number of threads that are not shown.
    pub left_out: usize,
    /// Number of visible boxes of the shown threads that are omitted.
    pub boxes_left_out: usize,
}

impl Chart {
    /// Reads the samples of a window and keeps the `threads_max` threads with the most time.
    pub fn of(
        tables: &dyn Tables,
        query: &StackQuery,
        threads_max: usize,
    ) -> Result<Self, ExportError> {
        let callsites = Callsites::read(tables)?;
        let mut threads = Threads::default();
        let mut strips: Vec<Strip> = Vec::new();
        let mut stacks: FxHashMap<Place, Vec<usize>> = FxHashMap::default();
        let info = tables.info();
        let whole = query
            .window
            .map_or(info.end_ns - info.begin_ns, |window| window.length());
        let apart = (whole as f64 * APART) as Ns;
        let about = each_sample(tables, query, &mut |sample| {
            let place = sample.place();
            let stack = stacks
                .entry(place)
                .or_insert_with(|| callsites.stack(place));
            let thread = threads.place(sample.comm, sample.pid, sample.tid);
            if strips.len() <= thread {
                strips.resize_with(thread + 1, Strip::default);
            }
            let span = (sample.begin, sample.begin.saturating_add(sample.dur));
            strips[thread].add(stack, span, (sample.is_off_cpu(), apart));
        })?;
        let labels = threads.all.iter().map(Thread::label);
        let mut strips: Vec<(String, Strip)> = labels.zip(strips).collect();
        for (_, strip) in &mut strips {
            strip.close(0);
        }
        strips.index_sort_by(|(name_a, a), (name_b, b)| {
            b.busy.cmp(&a.busy).then_with(|| name_a.cmp(name_b))
        });
        let left_out = strips.len().saturating_sub(threads_max);
        strips.truncate(threads_max);
        let scale = WIDTH / (about.end - about.begin).max(1) as f64;
        let thinnest = (THINNEST / scale) as Ns;
        let boxes_left_out = thin_out(&mut strips, thinnest, BOXES_MAX);
        Ok(Self {
            callsites,
            strips,
            about,
            left_out,
            boxes_left_out,
        })
    }
}

impl Strip {
    fn add(&mut self, stack: &[usize], (begin, end): (Ns, Ns), (is_off, apart): (bool, Ns)) {
        if !is_off {
            self.busy = self.busy.saturating_add(end - begin);
        }
        let goes_on = self.open.iter().zip(stack).take_while(|(open, frame)| {
            open.frame == **frame && begin <= open.end.saturating_add(apart)
        });
        let goes_on = goes_on.count();
        self.close(goes_on);
        let off = if is_off { end - begin } else { 0 };
        for open in &mut self.open {
            open.end = open.end.max(end);
            open.off = open.off.saturating_add(off);
        }
        for (depth, frame) in stack.iter().enumerate().skip(goes_on) {
            self.open.push(Stretch {
                begin,
                end,
                depth,
                frame: *frame,
                off,
            });
        }
    }

    fn close(&mut self, depth: usize) {
        self.done
            .extend(self.open.drain(depth.min(self.open.len())..));
    }

    /// Keeps the longest visible boxes; returns the number of omitted ones.
    fn thin_out(&mut self, thinnest: Ns, room: usize) -> usize {
        self.done.retain(|one| one.end - one.begin >= thinnest);
        self.done.index_sort_by_key(|one| {
            (std::cmp::Reverse(one.end - one.begin), one.begin, one.depth)
        });
        let more = self.done.len().saturating_sub(room);
        self.done.truncate(room);
        self.done.index_sort_by_key(|one| (one.depth, one.begin));
        more
    }

    fn depth(&self) -> usize {
        self.done.iter().map(|one| one.depth + 1).max().unwrap_or(1)
    }
}

/// Distributes the allowed number of boxes evenly; unused allowances go to other threads. Returns
/// the number of omitted boxes.
fn thin_out(strips: &mut [(String, Strip)], thinnest: Ns, room: usize) -> usize {
    let mut order: Vec<usize> = (0..strips.len()).collect();
    order.index_sort_by_key(|at| strips[*at].1.done.len());
    let (mut room, mut left_out) = (room, 0);
    for (before, at) in order.iter().enumerate() {
        let strip = &mut strips[*at].1;
        left_out += strip.thin_out(thinnest, room / (order.len() - before));
        room -= strip.done.len();
    }
    left_out
}

/// Writes the picture without boxes that are too thin to be seen.
pub fn write_chart(chart: &Chart, look: &SvgLook, out: &mut dyn Write) -> io::Result<()> {
    let rows: usize = chart
        .strips
        .iter()
        .map(|(_, strip)| strip.depth() + 1)
        .sum();
    let height = TOP + (rows + 1) * ROW + FOOT + look.notes.len() * ROW;
    write_head(look, (height, " data-chart=\"\""), out)?;
    let (begin, end) = (chart.about.begin, chart.about.end);
    let scale = WIDTH / (end - begin).max(1) as f64;
    // The whole comes first, as in a graph: clicking it resets the zoom.
    write_box(
        out,
        (
            "same",
            "all time",
            &format!("all time: {}", length(end - begin)),
        ),
        (0.0, WIDTH, TOP),
    )?;
    let mut top = TOP + ROW;
    for (name, strip) in &chart.strips {
        let tooltip = format!("{}: {} active", shown(name, false), length(strip.busy));
        write_box(out, ("same", name, &tooltip), (0.0, WIDTH, top))?;
        for one in &strip.done {
            let frame = &chart.callsites.frames[one.frame];
            let is_off = frame.kind != FrameKind::Mark && one.off * 2 > one.end - one.begin;
            let class = format!(
                "{}{}",
                of_kind(frame.kind),
                if is_off { " off" } else { "" }
            );
            let mut tooltip = shown(&frame.name, false).into_owned();
            if let Some(module) = &frame.module {
                let _ = write!(tooltip, " in {}", shown(module, false));
            }
            let _ = write!(
                tooltip,
                ": {}, from +{}",
                length(one.end - one.begin),
                length(one.begin - begin)
            );
            let left = (one.begin - begin) as f64 * scale;
            let width = (one.end - one.begin) as f64 * scale;
            let y = top + (one.depth + 1) * ROW;
            write_box(out, (&class, &frame.name, &tooltip), (left, width, y))?;
        }
        top += (strip.depth() + 1) * ROW;
    }
    write_foot(look, top, out)
}

fn write_box(
    out: &mut dyn Write,
    (class, name, tooltip): (&str, &str, &str),
    (left, width, y): (f64, f64, usize),
) -> io::Result<()> {
    let room = ((width - 6.0) / CHARACTER) as usize;
    let label = if room < 3 {
        String::new()
    } else {
        cut(&shown(name, false), room)
    };
    writeln!(
        out,
        "<g class=\"{class}\"><title>{}</title><rect x=\"{left:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\"/>\
         <text x=\"{:.2}\" y=\"{}\">{}</text></g>",
        escaped(tooltip),
        ROW - 1,
        left + 3.0,
        y + 12,
        escaped(&label),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(boxes: usize) -> (String, Strip) {
        let one = |at: usize| Stretch {
            begin: at as Ns * 10,
            end: at as Ns * 10 + 1 + at as Ns % 7,
            depth: 0,
            frame: 0,
            off: 0,
        };
        let strip = Strip {
            done: (0..boxes).map(one).collect(),
            ..Strip::default()
        };
        (String::new(), strip)
    }

    #[test]
    fn a_thread_with_many_boxes_leaves_room_for_the_others() {
        let mut strips = [strip(1_000), strip(30), strip(200)];
        let left_out = thin_out(&mut strips, 1, 300);
        let kept: Vec<usize> = strips.iter().map(|(_, strip)| strip.done.len()).collect();
        assert_eq!((kept.as_slice(), left_out), (&[135, 30, 135][..], 930));
        // The longest of them.
        assert!(strips[0].1.done.iter().all(|one| one.end - one.begin == 7));
    }
}
