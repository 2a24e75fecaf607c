//! Keys by which packets are signed.

use super::{Bfd, Entry, MOST};
use crate::auth::{AuthType, Key};
use crate::error::BfdError;
use crate::session::Auth;

impl Bfd {
    /// Adds a key, or gives one another secret.
    ///
    /// # Errors
    /// Sessions use it, or the secret is none.
    pub fn set_key(&self, id: u32, kind: AuthType, secret: &[u8]) -> Result<(), BfdError> {
        let key = Key::new(kind, secret).ok_or(BfdError::Secret)?;
        let mut keys = self.keys.borrow_mut();
        if keys.contains_key(&id) {
            if self.uses(id) > 0 {
                return Err(BfdError::InUse);
            }
        } else if keys.len() >= MOST {
            return Err(BfdError::TooMany(MOST));
        }
        keys.insert(id, key);
        Ok(())
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// There is none, or sessions use it.
    pub fn del_key(&self, id: u32) -> Result<(), BfdError> {
        if !self.keys.borrow().contains_key(&id) {
            return Err(BfdError::None);
        }
        if self.uses(id) > 0 {
            return Err(BfdError::InUse);
        }
        self.keys.borrow_mut().remove(&id);
        Ok(())
    }

    /// How many times sessions use a key.
    fn uses(&self, id: u32) -> usize {
        let of = |auth: Option<&Auth>| usize::from(auth.is_some_and(|auth| auth.conf_key == id));
        let sessions = self.sessions.borrow();
        let uses = |entry: &Entry| {
            let next = entry.session.next_auth.as_ref().and_then(|next| next.as_ref());
            of(entry.session.auth.as_ref()) + of(next)
        };
        sessions.all.values().map(uses).sum()
    }

    /// All keys, with how many times sessions use them.
    pub fn keys(&self) -> Vec<(u32, Key, usize)> {
        self.keys.borrow().iter().map(|(id, key)| (*id, *key, self.uses(*id))).collect()
    }

    pub(super) fn auth(&self, auth: Option<(u32, u8)>) -> Result<Option<Auth>, BfdError> {
        let Some((conf_key, key_id)) = auth else { return Ok(None) };
        let key = *self.keys.borrow().get(&conf_key).ok_or(BfdError::None)?;
        Ok(Some(Auth { conf_key, key, key_id }))
    }
}
