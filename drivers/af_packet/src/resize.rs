//! Another number of receive queues, while packets flow.

use crate::control::{HostInterface, HostInterfaces, count};
use crate::queue::QueueConfig;
use crate::{Error, Fanout, RxConfig, RxRing};

impl HostInterfaces {
    /// Gives a host interface more receive queues, or takes the last ones away. The kernel spreads flows over those that
    /// are open at any moment; what waits in a queue when it is closed is lost.
    pub(crate) fn resize(&self, host: &HostInterface, queues: u32) -> Result<(), Error> {
        let (queues, config) = (count("number of receive queues", Some(queues), 1)?, host.config.get());
        if queues > config.rx {
            let rings = further(host, config, queues)?;
            if let Err(e) = self.add_queues(host, config.rx, rings) {
                let _ = self.interfaces.keep_queues(host.port.index(), config.rx);
                return Err(e);
            }
        } else {
            self.interfaces.keep_queues(host.port.index(), queues)?;
        }
        host.config.set(QueueConfig { rx: queues, ..config });
        Ok(())
    }
}

/// Opens what is missing to so many queues, or nothing.
fn further(host: &HostInterface, config: QueueConfig, queues: usize) -> Result<Vec<RxRing>, Error> {
    let link = host.link.borrow();
    let link = link.as_ref().ok_or_else(|| Error::Gone { name: host.name.borrow().clone() })?;
    let fanout = Fanout::Join(host.first.borrow().group()?);
    let ring = RxConfig { fanout, ..config.ring(link) };
    (config.rx..queues).map(|_| RxRing::open(link.index, &ring)).collect()
}
