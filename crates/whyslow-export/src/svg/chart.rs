//! Stacks over time: a strip a thread, x is time. What a thread was in at one sample after the other is
//! one box.

use std::fmt::Write as _;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::text::shown;
use whyslow_store::Tables;

use super::{CHARACTER, FOOT, ROW, SvgLook, THINNEST, TOP, WIDTH};
use super::{cut, escaped, length, of_kind, write_foot, write_head};
use crate::ExportError;
use crate::profile::{Place, Thread, Threads};
use crate::stacks::{About, Callsites, FrameKind, StackQuestion, each_sample};

/// A picture of more is drawn by nobody.
const BOXES_MAX: usize = 60_000;
/// Samples that are farther apart than this share of the picture are two boxes.
const APART: f64 = THINNEST / WIDTH;

/// A function that a thread was in all the time.
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
    /// Of each depth, what may go on.
    open: Vec<Stretch>,
    busy: Ns,
}

/// Stacks of each thread over time.
#[derive(Debug)]
pub struct Chart {
    callsites: Callsites,
    /// Name, strip; who runs most comes first.
    strips: Vec<(String, Strip)>,
    pub about: About,
    /// Threads for which there was no room.
    pub left_out: usize,
}

impl Chart {
    pub fn of(
        tables: &dyn Tables,
        question: &StackQuestion,
        threads_max: usize,
    ) -> Result<Self, ExportError> {
        let callsites = Callsites::read(tables)?;
        let mut threads = Threads::default();
        let mut strips: Vec<Strip> = Vec::new();
        let mut stacks: FxHashMap<Place, Vec<usize>> = FxHashMap::default();
        let info = tables.info();
        let whole = question
            .window
            .map_or(info.end_ns - info.begin_ns, |window| window.length());
        let apart = (whole as f64 * APART) as Ns;
        let about = each_sample(tables, question, &mut |sample| {
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
        strips.sort_by(|(name_a, a), (name_b, b)| {
            b.busy.cmp(&a.busy).then_with(|| name_a.cmp(name_b))
        });
        let left_out = strips.len().saturating_sub(threads_max);
        strips.truncate(threads_max);
        Ok(Self {
            callsites,
            strips,
            about,
            left_out,
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

    fn depth(&self) -> usize {
        self.done.iter().map(|one| one.depth + 1).max().unwrap_or(1)
    }
}

/// Writes the picture: what is too thin to be seen is left out.
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
    // The whole comes first, as in a graph: the way back.
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
    let mut room = BOXES_MAX;
    for (name, strip) in &chart.strips {
        let told = format!("{}: {} at work", shown(name, false), length(strip.busy));
        write_box(out, ("same", name, &told), (0.0, WIDTH, top))?;
        let mut boxes: Vec<&Stretch> = strip
            .done
            .iter()
            .filter(|one| (one.end - one.begin) as f64 * scale >= THINNEST)
            .collect();
        // The longest, where there are too many.
        boxes.sort_by_key(|one| (std::cmp::Reverse(one.end - one.begin), one.begin, one.depth));
        boxes.truncate(room);
        room -= boxes.len();
        boxes.sort_by_key(|one| (one.depth, one.begin));
        for one in boxes {
            let frame = &chart.callsites.frames[one.frame];
            let is_off = frame.kind != FrameKind::Mark && one.off * 2 > one.end - one.begin;
            let class = format!(
                "{}{}",
                of_kind(frame.kind),
                if is_off { " off" } else { "" }
            );
            let mut told = shown(&frame.name, false).into_owned();
            if let Some(module) = &frame.module {
                let _ = write!(told, " in {}", shown(module, false));
            }
            let _ = write!(
                told,
                ": {}, from +{}",
                length(one.end - one.begin),
                length(one.begin - begin)
            );
            let left = (one.begin - begin) as f64 * scale;
            let width = (one.end - one.begin) as f64 * scale;
            let y = top + (one.depth + 1) * ROW;
            write_box(out, (&class, &frame.name, &told), (left, width, y))?;
        }
        top += (strip.depth() + 1) * ROW;
    }
    write_foot(look, top, out)
}

fn write_box(
    out: &mut dyn Write,
    (class, name, told): (&str, &str, &str),
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
        escaped(told),
        ROW - 1,
        left + 3.0,
        y + 12,
        escaped(&label),
    )
}
