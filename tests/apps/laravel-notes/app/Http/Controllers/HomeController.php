<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use Carbon\Carbon;
use Illuminate\Contracts\View\View;
use Illuminate\Http\JsonResponse;
use Illuminate\Http\RedirectResponse;
use Illuminate\Http\Request;
use Illuminate\Routing\Controller;

final class HomeController extends Controller
{
    private const OPENING_DAY = '2026-02-03';

    public function index(Request $request): View
    {
        return view('home', [
            'visits' => $request->session()->increment('visits'),
            'day' => Carbon::parse(self::OPENING_DAY)->translatedFormat('l, j F'),
        ]);
    }

    public function locale(Request $request, string $locale): RedirectResponse
    {
        $request->session()->put('locale', $locale);

        return redirect()->back()->cookie('favourite_locale', $locale, 60);
    }

    /** Returns all data that belongs to this visitor only. */
    public function whoami(Request $request): JsonResponse
    {
        return response()->json([
            'name' => $request->user()?->name,
            'same' => auth()->user()?->name,
            'locale' => app()->getLocale(),
            'greeting' => __('messages.greeting'),
            'visits' => $request->session()->get('visits', 0),
            'flash' => $request->session()->get('status'),
            'favourite' => $request->cookie('favourite_locale'),
            'url' => url()->current(),
            'query' => $request->query(),
        ]);
    }

    public function sign(): string
    {
        return url()->signedRoute('opened', ['for' => 'Ann'], absolute: false);
    }

    public function opened(Request $request): string
    {
        return "opened for {$request->query('for')}";
    }
}
