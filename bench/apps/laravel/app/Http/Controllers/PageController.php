<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use Illuminate\Contracts\View\View;
use Illuminate\Http\Request;
use Illuminate\Routing\Controller;

final class PageController extends Controller
{
    private const ITEMS = 50;

    public function index(Request $request): View
    {
        $visits = $request->session()->increment('visits');
        $items = array_map(
            static fn (int $id): array => ['id' => $id, 'name' => "Item $id", 'price' => $id * 37 % 100 / 10],
            range(1, self::ITEMS),
        );

        return view('index', ['items' => $items, 'visits' => $visits]);
    }

    public function item(int $id): View
    {
        return view('item', ['id' => $id]);
    }
}
