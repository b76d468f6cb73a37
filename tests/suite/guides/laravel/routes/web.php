<?php

declare(strict_types=1);

use Illuminate\Http\Request;
use Illuminate\Support\Facades\Route;
use Symfony\Component\HttpFoundation\StreamedResponse;

Route::get('/', static fn (Request $request) => view('home', [
    'name' => config('app.name'),
    'cart' => $request->session()->get('cart', []),
]));

Route::get('/add/{tea}', static function (Request $request, string $tea): string {
    $request->session()->push('cart', $tea);

    return implode(', ', $request->session()->get('cart')) . "\n";
});

Route::post('/letter', static fn (Request $request): string =>
    $request->file('letter')->getClientOriginalName() . ', ' . $request->file('letter')->getSize() . " bytes\n");

Route::get('/countdown', static fn (): StreamedResponse => response()->stream(static function (): void {
    foreach ([3, 2, 1] as $second) {
        echo "$second\n";
        flush();
    }
}));
