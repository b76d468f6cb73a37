<?php

declare(strict_types=1);

namespace Isolation\Unseen;

/**
 * Code that runs, or could run, after the end of the script.
 *
 * @return array<string, callable>
 */
function ends(): array
{
    return [
        'nothing' => static fn () => null,
        'objects' => static fn () => $GLOBALS['more'] = array_map(static fn (int $i) => new Node("$i"), range(1, 500)),
        'of extensions' => static fn () => $GLOBALS['more'] = [
            new \ArrayObject([new Node()]), new \SplObjectStorage(), new \DateTimeImmutable(), new \WeakMap(),
            \WeakReference::create($GLOBALS['graph']), new \ReflectionClass(Node::class), static fn () => null,
        ],
        'speaker' => static fn () => $GLOBALS['speaker'] = new Speaker('the scope'),
        'speaker of a class of SPL' => static fn () => $GLOBALS['more'] = new class extends \ArrayObject {
            public function __destruct()
            {
                Speaker::tell('destructor');
            }
        },
        'speakers below the boot' => static function (): void {
            $GLOBALS['graph']->below['first'] = new Speaker('the graph, made first');
            $GLOBALS['lone']->below[] = new Speaker('the lone one, made second');
            $GLOBALS['graph']->below['last'] = new Speaker('the graph, made last');
        },
        'a cycle' => static function (): void {
            $node = new Node();
            $node->below = [$node, new Speaker('a cycle')];
        },
        'replaced' => static function (): void {
            // The next object reuses its handle and memory.
            unset($GLOBALS['graph']->below[7]);
            $GLOBALS['graph']->below[7] = new Speaker('a place of the boot');
        },
        'file replaced' => static function (): void {
            unset($GLOBALS['lone']);
            $GLOBALS['file'] = new \SplFileObject(Speaker::$file, 'w');
            $GLOBALS['file']->fwrite("written\n");
        },
        'output' => static fn () => ob_start(static function (string $page): string {
            Speaker::tell('output');
            return strtoupper($page);
        }),
        'headers' => static function (): void {
            header_register_callback(static fn () => Speaker::tell('headers'));
            ob_start();
        },
        'stream' => static fn () => fwrite($GLOBALS['sink'] = fopen('sink://x', 'w'), 'text'),
        // The end of the buffer reports an unknown encoding, after the check for destructors.
        'an archive of the error handler' => static function (): void {
            @ini_set('iconv.output_encoding', 'nonsense');
            set_error_handler(static function (): bool {
                $GLOBALS['archive'] = new \ZipArchive();
                $GLOBALS['archive']->open(Speaker::$file, \ZipArchive::CREATE);
                $GLOBALS['archive']->addFromString('late', '');
                $GLOBALS['archive']->setMtimeName('late', 1_000_000_000);
                return true;
            });
            ob_start('ob_iconv_handler');
            echo "more\n";
        },
        'generator' => static function (): void {
            $generator = (static function (): \Generator {
                try {
                    yield 1;
                } finally {
                    Speaker::tell('finally');
                }
            })();
            $generator->current();
            $GLOBALS['generator'] = $generator;
        },
        'fiber' => static function (): void {
            $GLOBALS['fiber'] = new \Fiber(static function (): void {
                try {
                    \Fiber::suspend();
                } finally {
                    Speaker::tell('fiber');
                }
            });
            $GLOBALS['fiber']->start();
        },
        'session' => static function (): void {
            session_set_save_handler(new class extends \SessionHandler {
                public function write(string $id, string $data): bool
                {
                    Speaker::tell('session');
                    return true;
                }
            }, false);
            ini_set('session.use_cookies', '0');
            session_cache_limiter('');
            session_save_path(\dirname(Speaker::$file));
            session_id('anyone');
            @session_start();
        },
        'shutdown' => static fn () => register_shutdown_function(static function (): void {
            Speaker::tell('shutdown');
            $GLOBALS['late'] = new Speaker('made at shutdown');
        }),
        'exit' => static function (): never {
            $GLOBALS['graph']->below['last'] = new Speaker('the graph');
            exit('left');
        },
        'weak' => static function (): void {
            $weak = \WeakReference::create($GLOBALS['graph']);
            $GLOBALS['speaker'] = new class ($weak) {
                public function __construct(private \WeakReference $weak)
                {
                }

                public function __destruct()
                {
                    Speaker::tell($this->weak->get() ? 'still there' : 'gone');
                }
            };
        },
    ];
}
