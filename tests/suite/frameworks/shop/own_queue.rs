//! Messenger's messages in a `[[queue]]` of the server, with the files of the guide
//! (docs/guide/queues-in-frameworks.md).

use super::{Model, Shop, login, note};
use crate::frameworks::guide::block;
use samovar_testkit::visitor::Visitor;
use samovar_testkit::{Server, eventually};
use std::path::Path;

const PAGE: &str = "queues-in-frameworks";

const MESSAGE: &str = r"<?php
namespace App\Message;
final class Probe
{
    public function __construct(public string $kind, public float $sent) {}
}
";

/// Writes a line per run.
const HANDLER: &str = r#"<?php
namespace App\Message;
#[\Symfony\Component\Messenger\Attribute\AsMessageHandler]
final class HandleProbe
{
    public function __invoke(Probe $message): void
    {
        $when = microtime(true) - $message->sent < 1 ? 'early' : 'late';
        $line = $message->kind . ($message->kind === 'later' ? " $when" : '');
        file_put_contents(\dirname(__DIR__, 2) . '/ran', "$line\n", FILE_APPEND | LOCK_EX);
        if ($message->kind === 'fail') { throw new \RuntimeException('this message is poison'); }
    }
}
"#;

const CONTROLLER: &str = r"<?php
namespace App\Controller;
use App\Message\Probe;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Routing\Annotation\Route;
final class ProbeController extends \Symfony\Bundle\FrameworkBundle\Controller\AbstractController
{
    #[Route('/probe/{kind}')]
    public function probe(string $kind, MessageBusInterface $bus): Response
    {
        $stamps = $kind === 'later' ? [new DelayStamp(1000)] : [];
        $bus->dispatch(new Probe($kind, microtime(true)), $stamps);
        return new Response('sent');
    }
}
";

/// A transport that only stores: a line per message in the file `failed`.
const FAILED: &str = r#"<?php
namespace App\Message;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Stamp\ErrorDetailsStamp;
use Symfony\Component\Messenger\Stamp\SentToFailureTransportStamp;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportFactoryInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;
final class FailedTransport implements TransportInterface, TransportFactoryInterface
{
    public function createTransport(
        string $dsn, array $options, SerializerInterface $serializer
    ): TransportInterface {
        return $this;
    }
    public function supports(string $dsn, array $options): bool { return $dsn === 'lines://'; }
    public function send(Envelope $envelope): Envelope
    {
        $from = $envelope->last(SentToFailureTransportStamp::class)->getOriginalReceiverName();
        $why = $envelope->last(ErrorDetailsStamp::class)->getExceptionMessage();
        $line = "{$envelope->getMessage()->kind} from $from: $why\n";
        file_put_contents(\dirname(__DIR__, 2) . '/failed', $line, FILE_APPEND | LOCK_EX);
        return $envelope;
    }
    public function get(): iterable { return []; }
    public function ack(Envelope $envelope): void {}
    public function reject(Envelope $envelope): void {}
}
"#;
const FAILED_SERVICE: &str = "
    App\\Message\\FailedTransport:
        tags: [messenger.transport_factory]
";

fn change(file: &Path, change: impl FnOnce(String) -> String) {
    let text = std::fs::read_to_string(file).expect("our own file");
    let changed = change(text.clone());
    assert_ne!(text, changed, "{}", file.display());
    std::fs::write(file, changed).expect("our own file");
}

/// Installs the application, and adds the files of the guide. `messenger` is added to the settings
/// of Messenger. Returns it and the settings of the queue.
fn moved_to_samovar(messenger: &str) -> (Shop, String) {
    let shop = Shop::install(None);
    let at = |name: &str| shop.path().join(name);
    let variables = block(PAGE, "MESSENGER_TRANSPORT_DSN=\"samovar://messages\"");
    std::fs::write(at(".env.local"), variables).expect("our own file");
    std::fs::create_dir(at("jobs")).expect("our own folder");
    std::fs::write(at("jobs/messenger.php"), block(PAGE, "// jobs/messenger.php")).expect("a file");
    std::fs::write(at("src/Message/Probe.php"), MESSAGE).expect("our own file");
    std::fs::write(at("src/Message/HandleProbe.php"), HANDLER).expect("our own file");
    std::fs::write(at("src/Message/FailedTransport.php"), FAILED).expect("our own file");
    std::fs::write(at("src/Controller/ProbeController.php"), CONTROLLER).expect("our own file");
    change(&at("config/services.yaml"), |text| {
        let excluded = "'../src/Message/NoteWritten.php', '../src/Message/Probe.php'";
        let service = block(PAGE, "    Samovar\\Runtime\\Messenger\\TransportFactory:");
        text.replace("'../src/Message/NoteWritten.php'", excluded)
            + "\n"
            + &service
            + FAILED_SERVICE
    });
    change(&at("config/packages/framework.yaml"), |text| {
        let dsn = "async: '%env(MESSENGER_TRANSPORT_DSN)%'";
        let retries = "async: { dsn: '%env(MESSENGER_TRANSPORT_DSN)%', retry_strategy: \
                       { max_retries: 2, delay: 20, multiplier: 1 } }";
        let routing = "routing:\n            App\\Message\\Probe: async";
        text.replace("messenger:\n", &format!("messenger:\n{messenger}"))
            .replace("transports:\n", "transports:\n            failed: 'lines://'\n")
            .replace(dsn, retries)
            .replace("routing:", routing)
    });
    // `cache:clear` keeps a container that was built in the second in which the command begins.
    std::fs::remove_dir_all(at("var/cache")).expect("the cache of the installation");
    shop.console(&["cache:clear"]);
    let table = block(PAGE, "handler = \"jobs/messenger.php\"");
    let settings = table
        .replace("jobs/messenger.php", &at("jobs/messenger.php").display().to_string())
        + &format!("[jobs]\nstore = '{}'\n", at("jobs.store").display());
    (shop, settings)
}

fn wait_for_lines(shop: &Shop, expected: &[&str]) {
    eventually(&format!("the lines {expected:?}"), || {
        let text = std::fs::read_to_string(shop.path().join("ran")).unwrap_or_default();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        (lines == expected).then_some(())
    });
}

fn wait_until_ended(server: &Server, dead: u64) {
    eventually("an empty queue", || {
        let queue = server.status()["queues"][0].clone();
        let is_empty = ["ready", "delayed", "running"].iter().all(|of| queue[of] == 0);
        (is_empty && queue["dead"] == dead).then_some(())
    });
}

#[test]
fn shop_messages_in_a_queue_of_the_server_are_handled_retried_delayed_and_dead() {
    for model in [Model::Script, Model::Resident, Model::Checkpoint] {
        let (shop, settings) = moved_to_samovar("");
        let server = shop.serve_with(model, &settings);
        let mut visitor = Visitor::new(server.address());
        login(&mut visitor, "bob");
        note(&mut visitor, "The first note", "The first note", None);
        eventually("the note is read", || {
            visitor.get("/notes.json").text().contains("\"read\":true").then_some(())
        });
        for kind in ["later", "fail", "now"] {
            assert_eq!(server.get(&format!("/probe/{kind}")).text(), "sent");
        }
        wait_for_lines(&shop, &["fail", "fail", "fail", "later late", "now"]);
        wait_until_ended(&server, 1);
        server.wait_for_log("a job is dead: RuntimeException: this message is poison");
        server.stop();
    }
}

/// A message is in the failure transport after its last failure, once, and its job is done.
#[test]
fn last_failure_of_a_message_goes_to_the_failure_transport() {
    for model in [Model::Resident, Model::Checkpoint] {
        let (shop, settings) = moved_to_samovar("        failure_transport: failed\n");
        let server = shop.serve_with(model, &settings);
        for kind in ["now", "fail"] {
            assert_eq!(server.get(&format!("/probe/{kind}")).text(), "sent");
        }
        wait_for_lines(&shop, &["fail", "fail", "fail", "now"]);
        wait_until_ended(&server, 0);
        let failed = std::fs::read_to_string(shop.path().join("failed")).expect("the message");
        assert_eq!(failed, "fail from async: this message is poison\n");
        assert!(!server.log().contains("a job is dead"), "{}", server.log());
        server.stop();
    }
}
