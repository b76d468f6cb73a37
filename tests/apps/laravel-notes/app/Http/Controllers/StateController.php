<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use App\Models\User;
use Carbon\Carbon;
use Illuminate\Http\JsonResponse;
use Illuminate\Routing\Controller;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Event;

/**
 * State that a request can leave in a process. One request changes it, and the next request looks
 * for it.
 */
final class StateController extends Controller
{
    private static int $soiled = 0;

    public function show(): JsonResponse
    {
        return response()->json([
            'config' => config('app.name'),
            'locale' => app()->getLocale(),
            'dates' => Carbon::getLocale(),
            'container' => app()->bound('soil'),
            'shared' => view()->shared('soil'),
            'user' => auth()->user()?->name,
            'transactions' => DB::transactionLevel(),
            'timezone' => date_default_timezone_get(),
            'users' => User::where('name', 'ghost')->count(),
        ]);
    }

    /** Changes the state that show() reports, and state that the resident model keeps by design. */
    public function soil(): JsonResponse
    {
        $before = ['static' => self::$soiled, 'listening' => Event::hasListeners('soil')];
        self::$soiled++;
        Event::listen('soil', static fn () => null);
        config(['app.name' => 'Soiled']);
        app()->setLocale('de');
        Carbon::setLocale('de');
        app()->instance('soil', true);
        view()->share('soil', true);
        date_default_timezone_set('Asia/Tokyo');
        ob_start();
        DB::beginTransaction();
        auth()->setUser(new User(['name' => 'ghost']));

        return response()->json($before);
    }

    /** Afterwards the database must not be locked, and the uncommitted user must not exist. */
    public function exitInTransaction(): never
    {
        DB::beginTransaction();
        User::create(['name' => 'ghost', 'email' => 'ghost@example.org', 'password' => '']);
        exit('left in a transaction');
    }
}
