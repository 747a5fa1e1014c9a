//! `export html`: one file with the pages and their data, for readers that have neither the
//! recording nor this program.

mod contents;
mod markdown;
mod windows;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_model::text::shown;
use whyslow_sources::recording::Opened;

use super::snapshot::{Hidden, hidden};
use super::target::{Form, window_of, write_to};
use crate::cli::ReportArgs;
use crate::commands::server::Definitions;
use contents::Contents;
pub(super) use markdown::markdown;
use whyslow_serve::{Answers, page};

/// Files above this size are inconvenient to send.
const BYTES_CONVENIENT: usize = 15 << 20;

pub(super) fn html(args: &ReportArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let parts = ["index.html", "app.js", "app.css", "queries.json"].map(page);
    let [Some(frame), Some(script), Some(style), Some(queries)] = parts else {
        return Err(
            Failure::new("cannot write a report: this build has no web pages")
                .hint("build them with ./dev ui, or run: whyslow explain --format html"),
        );
    };
    let hidden = hidden(args.recording.as_deref(), &args.redact, talk)?;
    let recording = source(args, hidden.as_ref());
    let recording = recording.as_deref();
    let opened = Opened::find(recording, talk)?;
    let answers = Answers::of(recording, talk, Definitions::boxed())?;
    let window = window_of(&args.window, &opened)?;
    let contents = Contents::collect(&answers, &opened, window, &queries)?;
    let sentences = contents.sentences();
    let island = packed(&contents.into_json())?;
    let document = assembled(&Parts {
        frame: &frame,
        script: &script,
        style: &style,
        island: &island,
        title: opened.name(),
        sentences: &sentences,
    })?;
    let bytes = document.len();
    write_to(args.output.as_deref(), Form::Text, |out| {
        Ok(out.write_all(document.as_bytes())?)
    })?;
    if !talk.quiet {
        let size = bytes as f64 / f64::from(1 << 20);
        whyslow_base::talk::line(&format!("{size:.1} MiB; opens in any browser, offline"));
        if bytes > BYTES_CONVENIENT {
            whyslow_base::talk::line("note: the file is large (select a shorter window with -w)");
        }
    }
    Ok(())
}

/// The recording of a report: the given one, or its redacted copy.
fn source(args: &ReportArgs, hidden: Option<&Hidden>) -> Option<String> {
    match hidden {
        Some(hidden) => Some(hidden.path().display().to_string()),
        None => args.recording.clone(),
    }
}

/// Compressed and in Base64, which needs no escaping in HTML.
fn packed(contents: &serde_json::Value) -> Result<String, Failure> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    serde_json::to_writer(&mut packer, contents)
        .map_err(|error| Failure::new("cannot pack the report").caused_by(&error))?;
    let bytes = packer.finish()?;
    Ok(BASE64.encode(&bytes))
}

struct Parts<'p> {
    frame: &'p str,
    script: &'p str,
    style: &'p str,
    island: &'p str,
    title: &'p str,
    sentences: &'p [String],
}

/// References of the frame to the files of the pages.
const STYLE_PLACE: &str = "<link rel=\"stylesheet\" href=\"app.css\">";
const SCRIPT_PLACE: &str = "<script src=\"app.js\"></script>";

/// One document. Its policy allows only its own script and no requests: a script injected through a
/// name lacks the nonce.
fn assembled(parts: &Parts<'_>) -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(format!("cannot get random numbers: {error}")))?;
    let nonce = BASE64.encode(bytes);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         img-src data: blob:; base-uri 'none'; form-action 'none'"
    );
    // Within a script or style only the end tag needs escaping.
    let script = parts.script.replace("</script", "<\\/script");
    let style = parts.style.replace("</style", "<\\/style");
    let paragraphs = parts
        .sentences
        .iter()
        .map(|text| format!("<p>{}</p>", whyslow_render::html_text(&shown(text, false))));
    let sentences: String = paragraphs.collect();
    let title = format!(
        "<title>{} – whyslow</title>",
        whyslow_render::html_text(&shown(parts.title, false))
    );
    let document = parts
        .frame
        .replace("<title>whyslow</title>", &title)
        .replace(
            STYLE_PLACE,
            &format!(
                "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
                 <style nonce=\"{nonce}\">{style}</style>"
            ),
        );
    let document = document.replace("<noscript>", &format!("<noscript>{sentences}"));
    let scripts = format!(
        "<script type=\"text/plain\" id=\"whyslow-report\">{}</script>\n\
         <script nonce=\"{nonce}\">{script}</script>",
        parts.island
    );
    let whole = document.replacen(SCRIPT_PLACE, &scripts, 1);
    if whole.contains(SCRIPT_PLACE) || whole.contains(STYLE_PLACE) {
        return Err(Failure::new(
            "cannot write a report: unexpected index.html in this build",
        ));
    }
    Ok(whole)
}
