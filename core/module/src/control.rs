//! The control plane's shelf: every feature keeps its control object here, found by its type.

use std::any::{Any, TypeId, type_name};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use shoal_graph::Graph;
use shoal_graph::process::Processes;

/// The control plane of one router, owned by its main thread.
///
/// A feature puts one object of its own type here when it starts; others ask for it by that type. Objects
/// are shared ([`Rc`]) and look after their own interior mutability; the whole control plane is one thread.
#[derive(Default)]
pub struct Control {
    parts: RefCell<HashMap<TypeId, Rc<dyn Any>, BuildHasherDefault<AsItIs>>>,
}

/// Types' numbers are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 ^= n;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A feature asked for the control object of another that is not part of this router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not part of this router")]
pub struct Missing(pub &'static str);

impl Control {
    /// An empty shelf.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a feature's control object on the shelf, replacing one of the same type.
    pub fn put<T: 'static>(&self, part: T) -> Rc<T> {
        self.put_rc(Rc::new(part))
    }

    /// Puts a control object that is shared already on the shelf, replacing one of the same type.
    pub fn put_rc<T: 'static>(&self, part: Rc<T>) -> Rc<T> {
        self.parts.borrow_mut().insert(TypeId::of::<T>(), Rc::clone(&part) as Rc<dyn Any>);
        part
    }

    /// The graph.
    pub fn graph(&self) -> Result<Rc<Graph>, Missing> {
        self.get::<Graph>()
    }

    /// The main thread's tasks.
    pub fn processes(&self) -> Result<Rc<Processes>, Missing> {
        self.get::<Processes>()
    }

    /// The control object of type `T`, or an error that names the type.
    pub fn get<T: 'static>(&self) -> Result<Rc<T>, Missing> {
        let part = self.parts.borrow().get(&TypeId::of::<T>()).cloned();
        part.and_then(|p| p.downcast::<T>().ok()).ok_or(Missing(type_name::<T>()))
    }
}
