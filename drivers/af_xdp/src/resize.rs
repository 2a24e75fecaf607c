//! Queues of an interface that is there: another number of them while packets flow, and a restart of all when it is
//! back.

use std::sync::Arc;

use shoal_interface::Queue;
use shoal_link::Link;

use crate::config::{Mac, Queues, check_queues};
use crate::control::{XdpInterface, XdpInterfaces};
use crate::netns::run_in;
use crate::queue_memory::Rx;
use crate::queues;
use crate::rx::{Senders, XdpRx};
use crate::send::Sender;
use crate::{Error, filter::Filter};

impl XdpInterfaces {
    /// Gives an interface more queues, or takes the last ones away. Each is a pair: threads send by it, too. What waits in a
    /// queue when it is closed is lost; from then on the host has its frames.
    pub(crate) fn resize(&self, xdp: &XdpInterface, queues: u32) -> Result<(), Error> {
        check_queues(queues, "from 1 to 64")?;
        let link = xdp.link.borrow().clone().ok_or_else(|| Error::Gone(xdp.kernel.borrow().clone()))?;
        let open = xdp.attached.borrow().as_ref().map_or(0, |a| a.queues.len());
        let wanted = queues as usize;
        if wanted > open {
            self.open_more(xdp, &link, queues)?;
        } else if wanted < open {
            self.close_last(xdp, wanted)?;
            if let Some(remark) = queues::left_to_the_host(&link, wanted) {
                self.say(&remark);
            }
        }
        xdp.port.placement.resize(wanted);
        xdp.asked.borrow_mut().queues = Queues::Count(queues);
        Ok(())
    }

    fn open_more(&self, xdp: &XdpInterface, link: &Link, queues: u32) -> Result<(), Error> {
        let (opened, senders, first) = {
            let mut guard = xdp.attached.borrow_mut();
            let Some(attached) = guard.as_mut() else { return Err(Error::Gone(link.name.clone())) };
            let (first, pool) = (attached.queues.len(), Some(self.graph.pool()));
            let filter = xdp.filter.borrow();
            let (filter, config): (&Filter, _) = (&filter, xdp.config);
            let opened = run_in(xdp.netns.as_ref(), || {
                queues::open_more(attached, link, filter, &config, queues, pool)
            });
            (opened, attached.senders(link), first)
        };
        // Some may have been opened and closed again.
        self.release_buffers();
        let (halves, remarks) = opened?;
        let (rx, tx): (Vec<_>, Vec<_>) = halves.into_iter().unzip();
        xdp.port.add_tx(tx.into_iter().map(Sender::new));
        if let Err(e) = self.add_queues(xdp, first as u32, rx, senders) {
            let _ = self.close_last(xdp, first);
            return Err(e);
        }
        for remark in remarks {
            self.say(&remark);
        }
        Ok(())
    }

    /// Closes all queues but the first ones.
    fn close_last(&self, xdp: &XdpInterface, left: usize) -> Result<(), Error> {
        xdp.port.keep_tx(left);
        self.interfaces.keep_queues(xdp.port.index(), left)?;
        if let Some(attached) = xdp.attached.borrow_mut().as_mut() {
            attached.queues.truncate(left);
        }
        self.release_buffers();
        Ok(())
    }

    /// Puts receiving halves into the graph, in the place of those with the same numbers.
    pub(crate) fn add_queues(
        &self,
        xdp: &XdpInterface,
        first: u32,
        rings: Vec<Rx>,
        senders: Senders,
    ) -> Result<(), Error> {
        let index = xdp.port.index();
        for (number, ring) in (first..).zip(rings) {
            let queue = Box::new(XdpRx::new(Arc::clone(&xdp.port), ring, number, senders));
            self.interfaces.put_queue(index, Queue { number, node: self.input, queue, thread: None })?;
        }
        Ok(())
    }

    /// The interface has come back: program and queues on it.
    pub(crate) fn open_again(&self, xdp: &XdpInterface, link: &Link) -> Result<Vec<String>, Error> {
        let asked = xdp.asked.borrow().clone();
        // As many as were wanted last, or as there are now.
        let all = xdp.port.placement.queues() as u32;
        let (config, own_mac) = (xdp.config, (asked.mac != Mac::Kernels).then_some(xdp.mac.get()));
        let (mut attached, halves, remarks) = {
            let guard = xdp.filter.borrow();
            let filter: &Filter = &guard;
            let pool = Some(self.graph.pool());
            let open = |n| queues::open(link, filter, &config, Queues::Count(n), own_mac, pool);
            run_in(xdp.netns.as_ref(), || match open(all) {
                Err(Error::TooManyQueues { has, .. }) => open(has),
                opened => opened,
            })?
        };
        attached.stations.set_all(xdp.all_frames.get())?;
        let senders = attached.senders(link);
        let (rx, tx): (Vec<_>, Vec<_>) = halves.into_iter().unzip();
        xdp.port.replace_tx(tx.into_iter().map(Sender::new).collect());
        *xdp.link.borrow_mut() = Some(link.clone());
        *xdp.attached.borrow_mut() = Some(attached);
        xdp.apply()?;
        let index = xdp.port.index();
        self.interfaces.keep_queues(index, rx.len())?;
        self.add_queues(xdp, 0, rx, senders)?;
        Ok(remarks)
    }
}
