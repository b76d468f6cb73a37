//! Keys and the view that they change.

use super::table::Kind;
use ratatui::crossterm::event::{Event, KeyCode, KeyModifiers};

/// Number of lines that a page key moves.
const PAGE: usize = 10;

/// Effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Draws the view again.
    Stay,
    End,
}

/// Displayed table and its options.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) kind: Kind,
    /// Sort column of each table.
    sorts: [usize; Kind::ALL.len()],
    pub(super) is_reversed: bool,
    pub(super) is_paused: bool,
    /// First displayed line; drawing limits it to the table.
    pub(super) first: usize,
}

impl View {
    pub(super) fn new(kind: Kind) -> View {
        let sorts = Kind::ALL.map(Kind::first_sort);
        View { kind, sorts, is_reversed: false, is_paused: false, first: 0 }
    }

    pub(super) fn sort(&self) -> usize {
        self.sorts[self.kind as usize]
    }

    pub(super) fn press(&mut self, event: &Event) -> Step {
        let Event::Key(key) = event else { return Step::Stay };
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Step::End,
            KeyCode::Char('c') if is_control => return Step::End,
            KeyCode::Tab => self.turn(self.kind as usize + 1),
            KeyCode::BackTab => self.turn(self.kind as usize + Kind::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='4') => self.turn(digit as usize - '1' as usize),
            KeyCode::Right | KeyCode::Char('s' | '>') => self.sort_by(1),
            KeyCode::Left | KeyCode::Char('<') => self.sort_by(self.kind.columns().len() - 1),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Down | KeyCode::Char('j') => self.first = self.first.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown => self.first = self.first.saturating_add(PAGE),
            KeyCode::PageUp => self.first = self.first.saturating_sub(PAGE),
            KeyCode::Home => self.first = 0,
            KeyCode::End => self.first = usize::MAX,
            _ => {}
        }
        Step::Stay
    }

    fn turn(&mut self, to: usize) {
        self.kind = Kind::ALL[to % Kind::ALL.len()];
        (self.first, self.is_reversed) = (0, false);
    }

    fn sort_by(&mut self, further: usize) {
        let sort = &mut self.sorts[self.kind as usize];
        *sort = (*sort + further) % self.kind.columns().len();
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Step, View};
    use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

    fn press(view: &mut View, code: KeyCode) -> Step {
        view.press(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    #[test]
    fn keys_change_the_view() {
        let mut view = View::new(Kind::Routes);
        press(&mut view, KeyCode::Tab);
        assert_eq!((view.kind, view.sort()), (Kind::Workers, 4));
        press(&mut view, KeyCode::Char('s'));
        press(&mut view, KeyCode::BackTab);
        assert_eq!((view.kind, view.sort()), (Kind::Routes, 3));
        press(&mut view, KeyCode::Char('2'));
        assert_eq!(view.sort(), 5, "each table keeps its own");
        for _ in 0..view.kind.columns().len() {
            press(&mut view, KeyCode::Left);
        }
        assert_eq!(view.sort(), 5);
        press(&mut view, KeyCode::End);
        press(&mut view, KeyCode::Down);
        assert_eq!(view.first, usize::MAX);
        assert_eq!(press(&mut view, KeyCode::Char('x')), Step::Stay);
        assert_eq!(press(&mut view, KeyCode::Esc), Step::End);
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.press(&Event::Key(control_c)), Step::End);
    }
}
