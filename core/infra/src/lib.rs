//! Pools, tries, rings, QSBR and hugepage memory: raw structures behind safe APIs.
