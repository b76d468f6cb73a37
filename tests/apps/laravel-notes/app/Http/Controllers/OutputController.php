<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use App\Exceptions\TeaIsOut;
use Illuminate\Http\Response;
use Illuminate\Routing\Controller;
use Symfony\Component\HttpFoundation\BinaryFileResponse;
use Symfony\Component\HttpFoundation\StreamedResponse;

/** Ways to send a response, and ways to end a request. */
final class OutputController extends Controller
{
    private const PIECES = 5;
    private const PIECE_BYTES = 10_000;

    public function stream(): StreamedResponse
    {
        return response()->stream(static function (): void {
            foreach (range(1, self::PIECES) as $piece) {
                echo str_repeat((string) $piece, self::PIECE_BYTES), "\n";
                ob_get_level() > 0 && ob_flush();
                flush();
            }
        }, 200, ['Content-Type' => 'text/plain; charset=UTF-8', 'X-Streamed' => 'yes']);
    }

    public function streamDownload(): StreamedResponse
    {
        return response()->streamDownload(static function (): void {
            echo "a,b\n1,2\n";
        }, 'zahlen-ä.csv', ['Content-Type' => 'text/csv; charset=UTF-8']);
    }

    public function download(): BinaryFileResponse
    {
        return response()->download(public_path('style.css'), 'style.css')->setAutoEtag();
    }

    public function cached(): string
    {
        return 'rarely new';
    }

    /** Prints output before Laravel's response. */
    public function echo(): Response
    {
        echo 'echoed, ';
        header('X-Native: yes');

        return response('returned');
    }

    public function boom(): never
    {
        throw new \LogicException('thrown on purpose');
    }

    public function tea(): never
    {
        throw new TeaIsOut(3);
    }

    public function abort(int $status): never
    {
        abort($status, 'aborted', ['X-Aborted' => 'yes']);
    }

    public function dd(): never
    {
        session(['dumped' => true]);
        dd(['a' => 1, 'b' => [true, null]]);
    }

    public function exit(): never
    {
        header('X-Native: yes');
        echo 'left by exit()';
        exit(0);
    }

    public function fatal(): never
    {
        ini_set('memory_limit', '24M');
        str_repeat('x', 64 * 1024 * 1024);
        exit('there was memory');
    }

    public function warning(): string
    {
        return (string) [][0];
    }
}
