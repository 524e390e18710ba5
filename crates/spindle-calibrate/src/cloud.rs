//! What a cloud says of the volumes that were bought from it. Its metadata service is asked only where the firmware
//! says that the machine is that cloud's, and gets 300 ms; from any other machine nothing is sent. What no service
//! tells is asked of the person. Sources: "Use the Instance Metadata Service to access instance metadata" (Amazon EC2
//! user guide), "Predefined metadata keys" (Compute Engine), "Azure Instance Metadata Service" (version 2021-02-01).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use spindle_system::SystemTree;
use spindle_text::quantity::thousands_or_tenths;
use spindle_text::words;

/// The same in all clouds.
pub(crate) const SERVICE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), 80);
/// All questions together may take this long.
pub(crate) const LIMIT: Duration = Duration::from_millis(300);
/// No answer is larger, bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 10;
/// By this tag Azure's machines differ from others on Hyper-V (cloud-init, DataSourceAzure).
const GOOGLE_PRODUCT: &str = "Google Compute Engine";
const AZURE_TAG: &str = "7783-7084-3265-9085-8269-3286-77";
/// Less than this part of what was bought, and more than that, is told as a finding.
const UNDER: f64 = 0.9;
const OVER: f64 = 1.1;

words! {
    /// Whose machine it is.
    pub enum Cloud {
        /// Amazon EC2.
        Aws = "aws",
        /// Google Compute Engine.
        Google = "google",
        /// Microsoft Azure.
        Azure = "azure",
    }
}

/// What its metadata service said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CloudFacts {
    /// Whose machine it is.
    pub cloud: Cloud,
    /// What kind of machine was bought; `None` where it did not say.
    pub machine_type: Option<String>,
    /// Its volumes.
    pub volumes: Vec<CloudVolume>,
    /// Why there is less than there should be, in words.
    pub missing: Option<String>,
}

/// A volume, as the cloud calls it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CloudVolume {
    /// Its name.
    pub name: String,
    /// Its type, such as `Premium_LRS`.
    pub kind: String,
    /// Requests per second that were bought; `None` where it does not say.
    pub iops: Option<f64>,
    /// Bytes per second that were bought, in millions.
    pub mb_per_s: Option<f64>,
}

/// What was bought, as a person or the cloud says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bought {
    /// Requests per second.
    pub iops: Option<f64>,
    /// Bytes per second, in millions.
    pub mb_per_s: Option<f64>,
}

impl Cloud {
    /// What the firmware says; `None` on other machines.
    pub(crate) fn of(tree: &SystemTree) -> Option<Cloud> {
        let says = |name: &str| tree.firmware(name);
        match says("sys_vendor")?.as_str() {
            "Amazon EC2" => Some(Cloud::Aws),
            // Its laptops name it, too.
            "Google" if says("product_name").as_deref() == Some(GOOGLE_PRODUCT) => {
                Some(Cloud::Google)
            }
            "Microsoft Corporation" if says("chassis_asset_tag").as_deref() == Some(AZURE_TAG) => {
                Some(Cloud::Azure)
            }
            _ => None,
        }
    }

    /// Asks the metadata service at `address`, for at most `limit`.
    pub(crate) fn ask(self, address: SocketAddr, limit: Duration) -> CloudFacts {
        let service = Service {
            address,
            until: Instant::now() + limit,
        };
        let answer = match self {
            Cloud::Aws => of_aws(&service),
            Cloud::Google => of_google(&service),
            Cloud::Azure => of_azure(&service),
        };
        answer.unwrap_or_else(|| CloudFacts {
            cloud: self,
            machine_type: None,
            volumes: Vec::new(),
            missing: Some("its metadata service did not answer".to_owned()),
        })
    }
}

/// A service, and when to stop waiting for it.
struct Service {
    address: SocketAddr,
    until: Instant,
}

impl Service {
    /// The body of an answer of status 200.
    fn call(&self, method: &str, path: &str, header: &str) -> Option<String> {
        let left = || {
            let left = self.until.saturating_duration_since(Instant::now());
            (!left.is_zero()).then_some(left)
        };
        let mut stream = TcpStream::connect_timeout(&self.address, left()?).ok()?;
        stream.set_write_timeout(left()).ok()?;
        // Version 1.0: the answer ends with the connection, and comes in one piece.
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\n{header}\r\nContent-Length: 0\r\n\r\n",
            self.address.ip()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        loop {
            stream.set_read_timeout(Some(left()?)).ok()?;
            let count = stream.read(&mut piece).ok()?;
            answer.extend_from_slice(&piece[..count]);
            if answer.len() as u64 > ANSWER_BYTES_MAX {
                return None;
            }
            if count == 0 {
                break;
            }
        }
        let answer = String::from_utf8(answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split_whitespace().nth(1)?;
        (status == "200").then(|| body.to_owned())
    }

    fn get(&self, path: &str, header: &str) -> Option<String> {
        self.call("GET", path, header)
    }
}

/// Version 2 of its service: a token first. It names the machine, and not what its volumes may do.
fn of_aws(service: &Service) -> Option<CloudFacts> {
    let lasts = "X-aws-ec2-metadata-token-ttl-seconds: 60";
    let token = service.call("PUT", "/latest/api/token", lasts)?;
    let header = format!("X-aws-ec2-metadata-token: {}", token.trim());
    let machine_type = service.get("/latest/meta-data/instance-type", &header)?;
    Some(CloudFacts {
        cloud: Cloud::Aws,
        machine_type: Some(machine_type.trim().to_owned()),
        volumes: Vec::new(),
        missing: Some(
            "its metadata service does not tell what volumes may do: see `aws ec2 describe-volumes`"
                .to_owned(),
        ),
    })
}

fn of_google(service: &Service) -> Option<CloudFacts> {
    let header = "Metadata-Flavor: Google";
    let disks = service.get("/computeMetadata/v1/instance/disks/?recursive=true", header)?;
    let disks: Vec<Value> = serde_json::from_str(&disks).ok()?;
    let machine_type = service.get("/computeMetadata/v1/instance/machine-type", header);
    let volume = |disk: &Value| CloudVolume {
        name: said(&disk["deviceName"]),
        kind: said(&disk["type"]),
        iops: None,
        mb_per_s: None,
    };
    let last = |path: String| path.trim().rsplit('/').next().map(str::to_owned);
    Some(CloudFacts {
        cloud: Cloud::Google,
        machine_type: machine_type.and_then(last),
        volumes: disks.iter().map(volume).collect(),
        missing: Some(
            "its metadata service does not tell what volumes may do: it follows from type, size and machine"
                .to_owned(),
        ),
    })
}

fn of_azure(service: &Service) -> Option<CloudFacts> {
    let path = "/metadata/instance/compute?api-version=2021-02-01";
    let compute: Value = serde_json::from_str(&service.get(path, "Metadata: true")?).ok()?;
    let storage = &compute["storageProfile"];
    let data = storage["dataDisks"].as_array().into_iter().flatten();
    // Figures are texts; 0 or nothing where a disk has none.
    let figure = |value: &Value| said(value).parse().ok().filter(|figure| *figure > 0.0);
    let volume = |disk: &Value| CloudVolume {
        name: said(&disk["name"]),
        kind: said(&disk["managedDisk"]["storageAccountType"]),
        iops: figure(&disk["opsPerSecondThrottle"]),
        mb_per_s: figure(&disk["bytesPerSecondThrottle"]).map(|bytes| bytes / 1e6),
    };
    Some(CloudFacts {
        cloud: Cloud::Azure,
        machine_type: Some(said(&compute["vmSize"])),
        volumes: std::iter::once(&storage["osDisk"])
            .chain(data)
            .map(volume)
            .collect(),
        missing: None,
    })
}

/// A text or a number as text; empty for anything else.
fn said(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

impl Bought {
    /// What a person says, and where that is nothing, what the cloud says of its only volume with figures.
    pub(crate) fn of(asked: Bought, facts: Option<&CloudFacts>) -> Bought {
        let with_figures: Vec<&CloudVolume> = facts
            .into_iter()
            .flat_map(|facts| &facts.volumes)
            .filter(|volume| volume.iops.is_some() || volume.mb_per_s.is_some())
            .collect();
        let only = match with_figures.as_slice() {
            [only] => Bought {
                iops: only.iops,
                mb_per_s: only.mb_per_s,
            },
            _ => Bought::default(),
        };
        Bought {
            iops: asked.iops.or(only.iops),
            mb_per_s: asked.mb_per_s.or(only.mb_per_s),
        }
    }

    /// What was reached beside what was bought, a sentence for each figure.
    pub(crate) fn lines(&self, iops: Option<Reached>, mb_per_s: Option<Reached>) -> Vec<String> {
        let figures = [("IOPS", self.iops, iops), ("MB/s", self.mb_per_s, mb_per_s)];
        let line = |(unit, bought, reached): (&str, Option<f64>, Option<Reached>)| {
            Some(bought_line(unit, bought?, reached?))
        };
        figures.into_iter().filter_map(line).collect()
    }
}

/// The most that was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached {
    pub(crate) figure: f64,
    /// The time ended the search for more.
    pub(crate) is_out_of_time: bool,
    /// Memory answered, or what was never written was read from nowhere.
    pub(crate) is_of_others: bool,
}

fn bought_line(unit: &str, bought: f64, reached: Reached) -> String {
    let share = reached.figure / bought;
    let figures = format!(
        "{} {unit} were bought, and {} were reached ({:.0} %)",
        thousands_or_tenths(bought),
        thousands_or_tenths(reached.figure),
        share * 100.0
    );
    if reached.is_of_others {
        format!(
            "{figures}, but not by the volume: a cache answered, or zeros were read from nowhere"
        )
    } else if share < UNDER && reached.is_out_of_time {
        format!("{figures} before the time was over; give more with --time")
    } else if share < UNDER {
        format!("LESS THAN BOUGHT: {figures}; the machine's own limit or a throttle lies below it")
    } else if share > OVER {
        format!("More than bought: {figures}; probably a cache, or burst credit that will run out")
    } else {
        figures
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A busy machine answers late.
    const PATIENT: Duration = Duration::from_secs(60);

    /// A service that answers these paths, in this order, and then no more.
    fn service(answers: Vec<(&'static str, &'static str)>) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for (expected, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let count = stream.read(&mut request).unwrap();
                let request = String::from_utf8_lossy(&request[..count]);
                let status = match request.contains(expected) {
                    true => "200 OK",
                    false => "404 Not Found",
                };
                let answer = format!("HTTP/1.0 {status}\r\nServer: planted\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn only_the_firmware_of_a_cloud_makes_one() {
        let directory = tempfile::tempdir().unwrap();
        let firmware = directory.path().join("class/dmi/id");
        let tree = SystemTree::default().with_sys(directory.path().to_owned());
        assert_eq!(Cloud::of(&tree), None);
        std::fs::create_dir_all(&firmware).unwrap();
        let is = |vendor: &str, tag: &str| {
            std::fs::write(firmware.join("sys_vendor"), vendor).unwrap();
            std::fs::write(firmware.join("chassis_asset_tag"), tag).unwrap();
            Cloud::of(&tree)
        };
        assert_eq!(is("Amazon EC2\n", ""), Some(Cloud::Aws));
        assert_eq!(is("Google\n", ""), None, "a laptop of Google's");
        std::fs::write(firmware.join("product_name"), GOOGLE_PRODUCT).unwrap();
        assert_eq!(is("Google\n", ""), Some(Cloud::Google));
        assert_eq!(is("Microsoft Corporation\n", AZURE_TAG), Some(Cloud::Azure));
        assert_eq!(is("Microsoft Corporation\n", "of a desk"), None);
        assert_eq!(is("QEMU\n", ""), None);
    }

    #[test]
    fn amazon_wants_a_token_first() {
        let address = service(vec![
            ("PUT /latest/api/token HTTP/1.0", "secret"),
            ("X-aws-ec2-metadata-token: secret\r\n", "m7i.large"),
        ]);
        let facts = Cloud::Aws.ask(address, PATIENT);
        assert_eq!(facts.machine_type.as_deref(), Some("m7i.large"));
    }

    #[test]
    fn google_names_the_types_of_its_disks() {
        let disks = r#"[{"deviceName":"boot","index":0,"type":"PERSISTENT-SSD"}]"#;
        let address = service(vec![
            ("Metadata-Flavor: Google\r\n", disks),
            ("machine-type", "projects/1/machineTypes/n2-standard-4"),
        ]);
        let facts = Cloud::Google.ask(address, PATIENT);
        assert_eq!(facts.machine_type.as_deref(), Some("n2-standard-4"));
        assert_eq!(facts.volumes[0].kind, "PERSISTENT-SSD");
        assert_eq!(
            Bought::of(Bought::default(), Some(&facts)),
            Bought::default()
        );
    }

    #[test]
    fn azure_says_what_its_disks_may_do_and_a_person_overrules_it() {
        let compute = r#"{"vmSize":"Standard_D4s_v5","storageProfile":{
            "osDisk":{"name":"os","managedDisk":{"storageAccountType":"Premium_LRS"}},
            "dataDisks":[{"name":"data","managedDisk":{"storageAccountType":"UltraSSD_LRS"},
            "opsPerSecondThrottle":"3000","bytesPerSecondThrottle":"125000000"}]}}"#;
        let facts = Cloud::Azure.ask(service(vec![("Metadata: true\r\n", compute)]), PATIENT);
        assert_eq!(facts.volumes.len(), 2);
        let bought = Bought::of(Bought::default(), Some(&facts));
        assert_eq!((bought.iops, bought.mb_per_s), (Some(3000.0), Some(125.0)));
        let asked = Bought {
            iops: Some(4000.0),
            mb_per_s: None,
        };
        assert_eq!(Bought::of(asked, Some(&facts)).iops, Some(4000.0));
    }

    #[test]
    fn a_service_that_is_silent_or_refuses_is_not_waited_for() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let facts = Cloud::Azure.ask(listener.local_addr().unwrap(), Duration::from_millis(50));
        assert!(facts.missing.unwrap().contains("did not answer"));
        let refuses = service(vec![("nothing that is asked", "{}")]);
        assert!(Cloud::Azure.ask(refuses, PATIENT).missing.is_some());
    }

    #[test]
    fn what_was_reached_is_told_beside_what_was_bought() {
        let line = |figure, is_out_of_time| {
            let reached = Reached {
                figure,
                is_out_of_time,
                is_of_others: false,
            };
            bought_line("IOPS", 3000.0, reached)
        };
        let of_memory = Reached {
            figure: 6000.0,
            is_out_of_time: false,
            is_of_others: true,
        };
        let told = bought_line("IOPS", 3000.0, of_memory);
        assert!(told.contains("not by the volume"), "{told}");
        assert!(line(1500.0, false).starts_with("LESS THAN BOUGHT"));
        assert!(line(6000.0, true).starts_with("More than bought"));
        assert_eq!(
            line(1500.0, true),
            "3,000 IOPS were bought, and 1,500 were reached (50 %) before the time was over; give more with --time"
        );
        assert_eq!(
            line(2970.0, false),
            "3,000 IOPS were bought, and 2,970 were reached (99 %)"
        );
    }
}
