<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use Illuminate\Http\JsonResponse;
use Illuminate\Http\Request;
use Illuminate\Routing\Controller;

final class ApiController extends Controller
{
    public function echo(Request $request): JsonResponse
    {
        return response()->json([
            'method' => $request->method(),
            'all' => $request->all(),
            'json' => $request->isJson(),
            'body' => strlen($request->getContent()),
            'bearer' => $request->bearerToken(),
        ]);
    }

    public function sum(Request $request): JsonResponse
    {
        $input = $request->validate(['numbers' => ['required', 'array'], 'numbers.*' => ['integer']]);

        return response()->json(['sum' => array_sum($input['numbers'])], 201);
    }

    public function limited(): string
    {
        return 'within the limit';
    }
}
