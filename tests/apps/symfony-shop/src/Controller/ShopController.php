<?php

declare(strict_types=1);

namespace App\Controller;

use App\Entity\Product;
use App\EventListener\SessionLocale;
use App\Form\CartType;
use App\Repository\Notes;
use Doctrine\ORM\EntityManagerInterface;
use Symfony\Bundle\FrameworkBundle\Controller\AbstractController;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Routing\Annotation\Route;
use Symfony\Contracts\Translation\TranslatorInterface;

/** Pages for products, the cart and the language. */
final class ShopController extends AbstractController
{
    use RendersForms;

    private const CART = 'cart';

    public function __construct(
        private EntityManagerInterface $manager,
        private TranslatorInterface $translator,
    ) {
    }

    #[Route('/', name: 'home', methods: ['GET'])]
    public function home(Request $request, Notes $notes): Response
    {
        $session = $request->getSession();
        $session->set('visits', $visits = $session->get('visits', 0) + 1);
        $user = $this->getUser();

        return $this->render('home.html.twig', [
            'visits' => $visits,
            'cart' => array_sum($session->get(self::CART, [])),
            'notes' => $user === null ? 0 : count($notes->of($user)),
        ]);
    }

    #[Route('/language/{locale<en|de|fr>}', name: 'language', methods: ['GET'])]
    public function language(Request $request, string $locale): Response
    {
        $request->getSession()->set(SessionLocale::KEY, $locale);

        return $this->redirectToRoute('home');
    }

    /** The same for all visitors, so it can be cached and revalidated. */
    #[Route('/products', name: 'products', methods: ['GET'])]
    public function products(Request $request): Response
    {
        $products = $this->manager->getRepository(Product::class)->findBy([], ['name' => 'ASC']);
        $response = new Response();
        $changed = array_map(static fn (Product $product): \DateTimeImmutable => $product->changed, $products);
        $response->setPublic()->setLastModified(max($changed));
        $response->setEtag(md5(implode(' ', array_column($products, 'cents'))));
        if ($response->isNotModified($request)) {
            return $response;
        }

        return $this->render('products.html.twig', ['products' => $products], $response);
    }

    #[Route('/products/{id<\d+>}', name: 'product', methods: ['GET', 'POST'])]
    public function product(Request $request, int $id): Response
    {
        $product = $this->manager->find(Product::class, $id) ?? throw $this->createNotFoundException();
        $form = $this->createForm(CartType::class, ['count' => 1]);
        $form->handleRequest($request);
        if (!$form->isSubmitted() || !$form->isValid()) {
            return $this->renderWithForm('product.html.twig', $form, ['product' => $product]);
        }

        $session = $request->getSession();
        $cart = $session->get(self::CART, []);
        $count = $form->getData()['count'];
        $cart[$id] = ($cart[$id] ?? 0) + $count;
        $session->set(self::CART, $cart);
        $words = ['%count%' => $count, '%name%' => $product->name];
        $this->addFlash('notice', $this->translator->trans('cart.added', $words));

        return $this->redirectToRoute('cart', [], Response::HTTP_SEE_OTHER);
    }

    #[Route('/cart', name: 'cart', methods: ['GET'])]
    public function cart(Request $request): Response
    {
        $lines = [];
        foreach ($request->getSession()->get(self::CART, []) as $id => $count) {
            // Runs no query. The template queries when it uses the name.
            $lines[] = ['product' => $this->manager->getReference(Product::class, $id), 'count' => $count];
        }

        return $this->render('cart.html.twig', ['lines' => $lines]);
    }

    #[Route('/cart/empty', name: 'cart_empty', methods: ['POST'])]
    public function empty(Request $request): Response
    {
        $request->getSession()->remove(self::CART);

        return $this->redirectToRoute('cart', [], Response::HTTP_SEE_OTHER);
    }
}
