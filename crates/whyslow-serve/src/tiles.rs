//! `tile` and `series`: data for charts.

use std::io::Write as _;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int32Array, Int64Array, RecordBatch, UInt8Array, UInt16Array, UInt32Array,
};
use arrow_ipc::writer::StreamWriter;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use whyslow_base::args::Format;
use whyslow_base::failure::Failure;
use whyslow_model::Window;
use whyslow_tiles::{CELLS, LEVEL_MAX, Run, Series, Tiles};

use crate::form;
use crate::open_recording::OpenRecording;
use crate::query::Query;
use crate::reply::{self, Refusal};
use crate::server::Shared;

const LANES_MAX: usize = 1_000;
const POINTS: usize = 1_000;
const POINTS_MAX: usize = 20_000;
/// The tiles of a recording never change.
const FOR_EVER: &str = "private, immutable, max-age=31536000";
const COLUMNS: [&str; 10] = [
    "lane",
    "x",
    "n",
    "value",
    "a",
    "b",
    "c",
    "d",
    "count",
    "longest_ns",
];

/// The requested tiles.
#[derive(Debug, Clone)]
struct Wanted {
    track: String,
    level: u8,
    index: u64,
    lanes: Vec<i32>,
}

impl Wanted {
    fn of(query: &Query) -> Result<Self, Refusal> {
        let wanted = Self {
            track: query.need("track")?.to_owned(),
            level: query.number("level", LEVEL_MAX + 1)?,
            index: query.number("index", 0)?,
            lanes: query.numbers("lanes")?,
        };
        if wanted.level > LEVEL_MAX {
            return Err(Refusal::wrong(format!(
                "`level` must be between 0 and {LEVEL_MAX}"
            )));
        }
        if wanted.lanes.len() > LANES_MAX {
            let error = format!("a tile has at most {LANES_MAX} lanes");
            return Err(Refusal::wrong(error));
        }
        Ok(wanted)
    }

    fn runs(&self, tiles: &Tiles) -> Result<Vec<Run>, Refusal> {
        let name = &self.track;
        let mut tracks = tiles.tracks().iter();
        let track = tracks.find(|track| track.name == name).ok_or_else(|| {
            Refusal::new(StatusCode::NOT_FOUND, format!("unknown track `{name}`"))
        })?;
        let all: Vec<i32>;
        let lanes = if self.lanes.is_empty() {
            let ids = track.lanes.iter().map(|lane| lane.id);
            all = ids.take(LANES_MAX).collect();
            &all
        } else {
            &self.lanes
        };
        let runs = tiles.tile(name, self.level, self.index, lanes);
        Ok(runs.map_err(Failure::from)?)
    }
}

pub(crate) async fn tile(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&["track", "level", "index", "lanes", "digest", "format"])?;
    let format = form::of(request.headers(), &query)?;
    if !matches!(format, Format::Json | Format::Arrow) {
        let error = "unsupported format: use json or arrow";
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, error));
    }
    let current = shared.recordings.find(&query)?.now();
    let is_pinned = is_pinned(&query, &current)?;
    let wanted = Wanted::of(&query)?;
    let etag = etag(&current.digest, request.uri().query(), format);
    if is_pinned && has(request.headers(), &etag) {
        return Ok(pinned(StatusCode::NOT_MODIFIED.into_response(), &etag));
    }
    let tiles = current.charts.tiles()?;
    let made = shared.quick.run(move |_| {
        let runs = wanted.runs(&tiles)?;
        Ok(match format {
            Format::Arrow => arrow(&runs).map_err(Failure::from)?,
            _ => json_text(&runs, &wanted, &current),
        })
    });
    let mut response = Response::new(Body::from(made.await?));
    let media_type = HeaderValue::from_static(form::media_type(format));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media_type);
    if is_pinned {
        response = pinned(response, &etag);
    }
    Ok(response)
}

/// Whether the URL refers to the recording by its digest, so that the response can be cached. A
/// live recording that has been replaced has no tiles any more.
fn is_pinned(query: &Query, current: &OpenRecording) -> Result<bool, Refusal> {
    match query.get("digest") {
        None => Ok(false),
        Some(digest) if digest == current.digest => Ok(true),
        Some(_) => Err(
            Refusal::new(StatusCode::NOT_FOUND, "the recording has been replaced")
                .hint("see `recordings` for its digest"),
        ),
    }
}

fn etag(digest: &str, query: Option<&str>, format: Format) -> String {
    let text = format!("{digest} {} {format:?}", query.unwrap_or(""));
    format!("\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..32])
}

fn has(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|tags| tags.to_str().ok());
    known.is_some_and(|tags| {
        tags.split(',')
            .any(|tag| tag.trim().trim_start_matches("W/") == etag)
    })
}

fn pinned(mut response: Response, etag: &str) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(FOR_EVER));
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

fn json_text(runs: &[Run], wanted: &Wanted, current: &OpenRecording) -> Vec<u8> {
    let cell_ns = 1_i64 << wanted.level;
    let begin = i128::from(current.opened.tables.info().begin_ns)
        + i128::from(wanted.index) * i128::from(CELLS) * i128::from(cell_ns);
    let head = json!({
        "track": wanted.track,
        "level": wanted.level,
        "index": wanted.index,
        "begin_ns": i64::try_from(begin).unwrap_or(i64::MAX),
        "cell_ns": cell_ns,
        "lanes": wanted.lanes,
        "columns": COLUMNS,
    });
    let mut text = head.to_string().into_bytes();
    text.pop();
    text.extend(b",\"rows\":[");
    for (number, run) in runs.iter().enumerate() {
        let [a, b, c, d] = run.shares;
        let comma = if number > 0 { "," } else { "" };
        let Run {
            lane,
            x,
            n,
            value,
            count,
            longest_ns,
            ..
        } = run;
        let _ = write!(
            text,
            "{comma}[{lane},{x},{n},{value},{a},{b},{c},{d},{count},{longest_ns}]"
        );
    }
    text.extend(b"]}");
    text
}

fn arrow(runs: &[Run]) -> Result<Vec<u8>, arrow_schema::ArrowError> {
    fn column<A: FromIterator<T> + arrow_array::Array + 'static, T>(
        runs: &[Run],
        value: impl Fn(&Run) -> T,
    ) -> ArrayRef {
        Arc::new(runs.iter().map(value).collect::<A>())
    }
    let share = |of: usize| {
        let shares = runs.iter().map(|run| run.shares[of]);
        Arc::new(UInt8Array::from_iter_values(shares)) as ArrayRef
    };
    let arrays = [
        column::<Int32Array, _>(runs, |run| Some(run.lane)),
        column::<UInt16Array, _>(runs, |run| Some(run.x)),
        column::<UInt16Array, _>(runs, |run| Some(run.n)),
        column::<Int32Array, _>(runs, |run| Some(run.value)),
        share(0),
        share(1),
        share(2),
        share(3),
        column::<UInt32Array, _>(runs, |run| Some(run.count)),
        column::<Int64Array, _>(runs, |run| Some(run.longest_ns)),
    ];
    let fields = COLUMNS.into_iter().zip(arrays);
    let batch = RecordBatch::try_from_iter(fields)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(&batch)?;
    writer.into_inner()
}

pub(crate) async fn series(
    State(shared): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let query = Query::of(request.uri())?;
    query.only(&["name", "points", "w", "digest"])?;
    let name = query.get("name").unwrap_or("activity").to_owned();
    let points = query.number("points", POINTS)?.clamp(1, POINTS_MAX);
    let current = shared.recordings.find(&query)?.now();
    let info = current.opened.tables.info();
    let whole = Window::new(info.begin_ns, info.end_ns.saturating_add(1));
    let window = query.named_window(&current.opened)?.unwrap_or(whole);
    let tiles = current.charts.tiles()?;
    let found = shared.quick.run(move |_| {
        let all = tiles.series(window, points).map_err(Failure::from)?;
        let is_it = |series: &Series| name == "activity" || series.name == name;
        let found: Vec<Series> = all.into_iter().filter(is_it).collect();
        if found.is_empty() && name != "activity" {
            let error = format!("unknown series `{name}`");
            return Err(Refusal::new(StatusCode::NOT_FOUND, error));
        }
        Ok(found)
    });
    let found = found.await?;
    let first = found.first();
    let lines: Vec<Value> = found.iter().map(line).collect();
    reply::json_document(&json!({
        "begin_ns": first.map_or(window.begin, |series| series.begin_ns),
        "step_ns": first.map_or(0, |series| series.step_ns),
        "series": lines,
    }))
}

fn line(series: &Series) -> Value {
    json!({
        "name": series.name,
        "unit": series.unit,
        "begin_ns": series.begin_ns,
        "step_ns": series.step_ns,
        "values": series.values,
    })
}
