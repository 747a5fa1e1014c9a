//! Questions to made recordings, against hand-made answers and against SQL on the same files.

mod by_hand;
mod made;
mod oracle;
mod shown;
